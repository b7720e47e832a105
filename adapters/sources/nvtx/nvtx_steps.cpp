#include "adapters/sources/nvtx/nvtx_steps.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <utility>

#include "adapters/launch/channel_of.hpp"

namespace ringmain::nvtx {
namespace {

/// Never destroyed: a program may call NVTX until it is gone.
struct Saying {
  StepRules rules;
  Channel<step::Step>* channel;
  const Saying* earlier;  // kept: a thread may still be using it
  std::atomic<std::uint64_t> counted{0};
  std::atomic<std::uint64_t> current{0};
  std::atomic<bool> inside{false};
};
std::atomic<Saying*> saying{nullptr};

constexpr std::string_view kDigits = "0123456789";

/// A phase's name, without a number that would make it differ in every step.
std::string_view without_number(std::string_view message) noexcept {
  std::string_view name = message.substr(0, message.find_first_of(kDigits));
  while (!name.empty() && std::string_view(" #:=_-/([").find(name.back()) != name.npos)
    name.remove_suffix(1);
  return name.empty() ? message : name;
}

}  // namespace

Part::Of StepRules::kind_of(const Range& given, std::uint64_t& number,
                            bool& numbered) const noexcept {
  const std::string_view message = given.message.view();
  for (const Rule& rule : rules_) {
    if (!fits(given.domain.view(), rule.domain) || !fits(message, rule.message)) continue;
    numbered = false;
    if (const std::size_t star = rule.message.find('*'); star != rule.message.npos) {
      const std::size_t digits = message.find_first_of(kDigits, star);
      const char* const end = message.data() + message.size();
      numbered = digits != message.npos &&
                 std::from_chars(message.data() + digits, end, number).ec == std::errc{};
    }
    if (!numbered && (given.payload == Payload::u64 || given.payload == Payload::u32)) {
      number = given.payload_unsigned;
      numbered = true;
    }
    const bool is_signed = given.payload == Payload::i64 || given.payload == Payload::i32;
    if (!numbered && is_signed && given.payload_signed >= 0) {
      number = static_cast<std::uint64_t>(given.payload_signed);
      numbered = true;
    }
    return rule.of;
  }
  return Part::Of::nothing;
}

Result<bool> publish_steps(Bus& bus, std::string_view written) {
  auto rules = StepRules::read(written);
  if (!rules) return rules.error();
  const auto channel = run::channel_of<step::Step>(bus);
  if (!channel) return channel.error();
  saying = new Saying{std::move(rules).value(), channel.value(), saying};
  return true;
}

bool steps_wanted() noexcept {
  const Saying* const now = saying;
  return now != nullptr && now->channel->wanted();
}

Part part_of(const Range& begun) noexcept {
  Saying* const now = saying;
  Part part;
  if (now == nullptr) return part;
  bool numbered = false;
  part.of = now->rules.kind_of(begun, part.step, numbered);
  if (part.of == Part::Of::step && !numbered) part.step = ++now->counted;
  if (part.of != Part::Of::phase) return part;
  part.step = now->current;
  if (!now->inside) return {};  // a phase of no step
  part.phase = Name(without_number(begun.message.view()));
  return part;
}

void publish_begin(const Part& part) noexcept {
  Saying* const now = saying;
  if (now == nullptr || part.of == Part::Of::nothing) return;
  if (part.of == Part::Of::step) {
    now->current = part.step;
    now->inside = true;
  }
  now->channel->post({part.step, part.phase, 0, step::Edge::begin, 0});
}

void publish_end(const Part& part, std::int64_t took_ns) noexcept {
  Saying* const now = saying;
  if (now == nullptr || part.of == Part::Of::nothing) return;
  if (part.of == Part::Of::step) now->inside = false;
  now->channel->post({part.step, part.phase, 0, step::Edge::end, took_ns});
}

}  // namespace ringmain::nvtx
