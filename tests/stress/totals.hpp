// What has a soak done in all its runs so far, and how does the next one take it over?
//
// A file of lines "name number" under the version that counted them, with a sum over all of it. It
// is replaced as a whole or not at all, so a run that is killed leaves the figures of ten seconds
// ago.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {

struct Totals {
  std::uint64_t runs = 0, seconds = 0, seed = 0, faults = 0;  // the seed is the last run's
  std::uint64_t events = 0, heard = 0, dropped = 0, evicted = 0, coalesced = 0, vetoed = 0,
                ordered = 0, told = 0, subscriptions = 0, threads = 0, buses = 0;

  static constexpr std::array<std::pair<const char*, std::uint64_t Totals::*>, 15> names();
  void add(const Tally& tally);
};

constexpr std::array<std::pair<const char*, std::uint64_t Totals::*>, 15> Totals::names() {
  return {{{"runs", &Totals::runs},
           {"seconds", &Totals::seconds},
           {"seed", &Totals::seed},
           {"faults", &Totals::faults},
           {"events", &Totals::events},
           {"heard", &Totals::heard},
           {"dropped", &Totals::dropped},
           {"evicted", &Totals::evicted},
           {"coalesced", &Totals::coalesced},
           {"vetoed", &Totals::vetoed},
           {"ordered", &Totals::ordered},
           {"told", &Totals::told},
           {"subscriptions", &Totals::subscriptions},
           {"threads", &Totals::threads},
           {"buses", &Totals::buses}}};
}

/// Reads `file` into `totals`; a file that is not there leaves them as they are. Returns "", or one
/// sentence that says why they cannot be taken over and what to do.
[[nodiscard]] std::string take_over(const std::string& file, Totals& totals);
/// Returns "", or one sentence that says why not.
[[nodiscard]] std::string save(const std::string& file, const Totals& totals);

}  // namespace ringmain::stress
