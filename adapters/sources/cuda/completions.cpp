#include "adapters/sources/cuda/completions.hpp"

#include <utility>

#include "adapters/sources/cuda/completions_core.hpp"

namespace ringmain::cuda {

std::string_view to_string(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::automatic:
      return "automatic";
    case Strategy::memory_writes:
      return "memory_writes";
    case Strategy::event_queries:
      return "event_queries";
    case Strategy::host_functions:
      return "host_functions";
  }
  return "unknown";
}

std::string_view to_string(ArmCode code) noexcept {
  constexpr std::array<std::string_view, kArmCodes> kNames = {
      "armed",     "capturing", "other_context", "full",  "no_lane",
      "no_memory", "driver",    "lost",          "ended", "forbidden"};
  const auto i = static_cast<std::size_t>(code);
  return i < kNames.size() ? kNames[i] : "unknown";
}

Completions::Completions(std::shared_ptr<CompletionsCore> core) noexcept : core_(std::move(core)) {}

Completions& Completions::operator=(Completions&& other) noexcept {
  if (this == &other) return *this;
  Completions old(std::move(*this));  // ends below
  core_ = std::move(other.core_);
  return *this;
}

Completions::~Completions() {
  if (core_ == nullptr) return;
  if (core_->forked()) {
    core_->keep();  // its thread is the parent's
    return;
  }
  (void)end(core_->options.end_ns);  // whatever it answers, no ticket is given from here on
}

Result<Completions> Completions::make(Bus& bus, const CompletionsOptions& options) {
  auto core = CompletionsCore::make(bus, options);
  if (!core) return core.error();
  return Completions(std::move(core).value());
}

Armed Completions::arm(void* stream, std::uint64_t tag) noexcept {
  if (core_ == nullptr) return {.code = ArmCode::ended};
  return core_->arm(stream, tag, nullptr);
}

Armed Completions::arm_after_launch(void* graph_exec, void* stream, std::uint64_t tag) noexcept {
  if (core_ == nullptr) return {.code = ArmCode::ended};
  if (graph_exec == nullptr) return {.code = ArmCode::driver, .result = kInvalidValue};
  return core_->arm(stream, tag, graph_exec);
}

Result<GraphNode> Completions::add_host_node(void* graph, std::span<void* const> dependencies,
                                             std::uint64_t tag) {
  if (core_ == nullptr)
    return Error{Error::Code::refused, "an empty Completions adds no node: make() one"};
  return core_->add_host_node(graph, dependencies, tag);
}

Detached Completions::end(nanoseconds limit) noexcept {
  if (core_ == nullptr || core_->forked()) return Detached::was_not_attached;
  return core_->end(limit);
}

CompletionFigures Completions::figures() const noexcept {
  return core_ == nullptr ? CompletionFigures{} : core_->figures();
}

}  // namespace ringmain::cuda
