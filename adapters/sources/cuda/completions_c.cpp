// Completions for callers of C: Python calls these functions by ctypes (bindings/python/ringmain/
// _cuda_tickets_library.py).
//
// A Completions that is null is as an empty one. A result's place that is null is not written, and
// neither is a sentence whose place is null. Threads: any; release() is the last call with one.
// Nothing is thrown.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "adapters/launch/c_answers.hpp"
#include "adapters/sources/cuda/completions.hpp"

using ringmain::Bus;
using ringmain::Detached;
using ringmain::Result;
using ringmain::c_answers::kWrongOptions;
using ringmain::c_answers::made_by;
using ringmain::c_answers::say;
using ringmain::cuda::ArmCode;
using ringmain::cuda::Armed;
using ringmain::cuda::CompletionFigures;
using ringmain::cuda::Completions;
using ringmain::cuda::CompletionsOptions;
using ringmain::cuda::GraphNode;
using ringmain::cuda::Strategy;

namespace {

/// In the order of the array that make() reads.
enum Option : std::size_t {
  kStrategy,
  kLanes,
  kTickets,
  kCapacity,
  kSpinUs,
  kSleepUs,
  kWatchUs,
  kEndNs
};
/// In the order of the array that figures() writes; the answers of arm() by code come after them.
enum Figure : std::size_t {
  kArmed,
  kCompleted,
  kFailed,
  kAbandoned,
  kPending,
  kRefusedEvents,
  kAsked,
  kLanesTaken,
  kUsed,
  kResult,
  kArms
};

Completions& completions_of(void* completions) noexcept {
  static Completions none;
  return completions == nullptr ? none : *static_cast<Completions*>(completions);
}

/// Larger numbers than a field holds are its largest, which make() judges as any other.
std::uint32_t number(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, ~std::uint32_t{0}));
}
template <class Duration>
Duration duration(std::uint64_t value) noexcept {
  return Duration(static_cast<typename Duration::rep>(
      std::min(value, static_cast<std::uint64_t>(Duration::max().count()))));
}

CompletionsOptions read(const std::uint64_t* numbers) {
  CompletionsOptions made;
  made.strategy = static_cast<Strategy>(std::min<std::uint64_t>(numbers[kStrategy], 255));
  made.lanes_max = number(numbers[kLanes]);
  made.lane_tickets = number(numbers[kTickets]);
  made.capacity_events = number(numbers[kCapacity]);
  made.spin_us = duration<ringmain::microseconds>(numbers[kSpinUs]);
  made.sleep_us_max = duration<ringmain::microseconds>(numbers[kSleepUs]);
  made.watch_us = duration<ringmain::microseconds>(numbers[kWatchUs]);
  made.end_ns = duration<ringmain::nanoseconds>(numbers[kEndNs]);
  return made;
}

int told(const Armed& armed, std::uint64_t* ticket, std::int32_t* result) noexcept {
  if (ticket != nullptr) *ticket = armed.ticket;
  if (result != nullptr) *result = armed.result;
  return static_cast<int>(armed.code);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

/// `numbers`: eight, as enum Option; null: the defaults. `*made` belongs to the caller, until
/// release().
int ringmain_cuda_completions_make(void* bus, const std::uint64_t* numbers, void** made, char* why,
                                   std::size_t why_bytes) noexcept {
  if (bus == nullptr || made == nullptr) {
    say(bus == nullptr ? "there is no bus for the completions: give one"
                       : "there is no place for the completions: give one",
        why, why_bytes);
    return kWrongOptions;
  }
  return made_by(
      [&] {
        auto room = std::make_unique<Completions>();
        auto ready = Completions::make(*static_cast<Bus*>(bus),
                                       numbers == nullptr ? CompletionsOptions{} : read(numbers));
        if (!ready) return Result<std::unique_ptr<Completions>>(ready.error());
        *room = std::move(ready).value();
        return Result<std::unique_ptr<Completions>>(std::move(room));
      },
      [&](std::unique_ptr<Completions> ready) { *made = ready.release(); }, why, why_bytes);
}
/// Ends it, with the limit that it was made with.
void ringmain_cuda_completions_release(void* completions) noexcept {
  delete static_cast<Completions*>(completions);
}
/// ArmCode; `ticket` and the driver's `result` are written whatever it is.
int ringmain_cuda_completions_arm(void* completions, void* stream, std::uint64_t tag,
                                  std::uint64_t* ticket, std::int32_t* result) noexcept {
  return told(completions_of(completions).arm(stream, tag), ticket, result);
}
/// As arm(). `launched`: 1, the graph is on its way.
int ringmain_cuda_completions_arm_after_launch(void* completions, void* graph_exec, void* stream,
                                               std::uint64_t tag, std::uint64_t* ticket,
                                               std::int32_t* result, int* launched) noexcept {
  const Armed armed = completions_of(completions).arm_after_launch(graph_exec, stream, tag);
  if (launched != nullptr) *launched = armed.launched ? 1 : 0;
  return told(armed, ticket, result);
}
/// `dependencies`: that many nodes of the graph. `*node` is the CUgraphNode that was added.
int ringmain_cuda_completions_add_host_node(void* completions, void* graph,
                                            void* const* dependencies, std::size_t many,
                                            std::uint64_t tag, void** node, std::uint32_t* lane,
                                            char* why, std::size_t why_bytes) noexcept {
  if (dependencies == nullptr) many = 0;
  return made_by(
      [&] {
        return completions_of(completions)
            .add_host_node(graph, std::span<void* const>(dependencies, many), tag);
      },
      [&](const GraphNode& added) {
        if (node != nullptr) *node = added.node;
        if (lane != nullptr) *lane = added.lane;
      },
      why, why_bytes);
}
/// ringmain::Detached. Negative: for ever.
int ringmain_cuda_completions_end(void* completions, std::int64_t limit_ns) noexcept {
  return static_cast<int>(completions_of(completions).end(ringmain::nanoseconds(limit_ns)));
}
/// Writes at most `many` of kArms + kArmCodes numbers.
void ringmain_cuda_completions_figures(void* completions, std::int64_t* figures,
                                       std::size_t many) noexcept {
  if (figures == nullptr) return;
  const CompletionFigures now = completions_of(completions).figures();
  std::array<std::int64_t, kArms + ringmain::cuda::kArmCodes> all{};
  const auto put = [&all](std::size_t where, std::uint64_t value) {
    all[where] = static_cast<std::int64_t>(value);
  };
  put(kArmed, now.armed);
  put(kCompleted, now.completed);
  put(kFailed, now.failed);
  put(kAbandoned, now.abandoned);
  put(kPending, now.pending);
  put(kRefusedEvents, now.refused);
  put(kAsked, now.asked);
  put(kLanesTaken, now.lanes);
  put(kUsed, static_cast<std::uint64_t>(now.strategy));
  all[kResult] = now.result;
  for (std::size_t code = 0; code < now.arms.size(); ++code) put(kArms + code, now.arms[code]);
  std::copy_n(all.begin(), std::min(many, all.size()), figures);
}

}  // extern "C"
#pragma GCC visibility pop
