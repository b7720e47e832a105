// Question: what does a backend pay for reporting one operation, from issue to completion (11a,
// 11b)?
#include <cstdint>

#include "bus/test_bus.hpp"

#include "events/collective.hpp"

#include "bench/repetition.hpp"
#include "bench/reported.hpp"
#include "bench/time_each.hpp"
#include "bench/two_enqueues.hpp"

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

[[maybe_unused]] const bool kAdded[] = {
    add("collective", "unheard", {}, unheard),
    add("collective", "heard", {}, heard),
    add("collective", "bare_enqueues", {}, two_enqueues<kStretch>),
};

}  // namespace
}  // namespace ringmain::bench
