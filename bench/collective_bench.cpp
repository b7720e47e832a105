// Question: what does a backend pay for reporting one operation, from issue to completion (11a,
// 11b)?
#include <cstdint>
#include <memory>

#include "engine/system/clock.hpp"

#include "bus/test_bus.hpp"

#include "events/collective.hpp"

#include "bench/reference.hpp"
#include "bench/repetition.hpp"
#include "bench/reported.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using namespace ringmain::collective;

void unheard(Repetition& repetition) {
  TestBus bus;
  Reported reported(bus);
  std::uint64_t ended = 0;
  repetition.value(time_each([&] {
    if (reported.all_reduce()) [[unlikely]]
      ++ended;
    benchmark::ClobberMemory();
  }));
  if (ended != 0) repetition.fail("nobody listens, yet an operation was open");
}

constexpr int kStretch = 2048;  // operations, of two events each

void heard(Repetition& repetition) {
  TestBus bus;
  std::uint64_t issued = 0, completed = 0;
  const auto begins = bus.channel<Issued>().subscribe([&](const Issued&) { ++issued; });
  const auto ends = bus.channel<Completed>().subscribe([&](const Completed&) { ++completed; });
  Reported reported(bus);
  std::uint64_t lost = 0;
  repetition.value(time_stretches<kStretch>([&] { lost += reported.all_reduce() ? 0u : 1u; },
                                            [&] { (void)bus.deliver(); }));
  if (lost != 0 || issued != completed || issued != std::uint64_t{40} * kStretch)
    repetition.fail("operations were lost");
}

/// What it is compared with: a bare enqueue of each event by a token, and the two looks at the
/// clock.
void bare_enqueues(Repetition& repetition) {
  auto begins = std::make_unique<RawQueue<Issued>>();
  auto ends = std::make_unique<RawQueue<Completed>>();
  std::uint64_t seen = 0;
  const auto hear = [&seen](const auto&) { ++seen; };
  repetition.value(time_stretches<kStretch>(
      [&] {
        const std::int64_t began = engine::now_ns();
        (void)begins->push([&]() noexcept {
          Issued event;
          event.duration_ns = began;
          return event;
        });
        (void)ends->push([&]() noexcept {
          Completed event;
          event.duration_ns = engine::now_ns() - began;
          return event;
        });
      },
      [&] {
        while (begins->take(hear) + ends->take(hear) != 0) {
        }
      }));
}

[[maybe_unused]] const bool kAdded[] = {
    add("collective", "unheard", {}, unheard),
    add("collective", "heard", {}, heard),
    add("collective", "bare_enqueues", {}, bare_enqueues),
};

}  // namespace
}  // namespace ringmain::bench
