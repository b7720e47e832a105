// Peer: SystemTap's static marks of four words while nothing is attached: an instruction that does
// nothing, with or without a word beside it that says whether somebody listens. What attaches puts
// a trap there, or a jump where the kernel can.
#define _SDT_HAS_SEMAPHORES 1  // NOLINT: the header's own switch
#include <cstdint>
#include <sys/sdt.h>

#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

// The header finds these words by their names. Whoever attaches counts up in them.
extern "C" {
[[gnu::section(".probes"), gnu::used]] volatile unsigned short  // NOLINT: a tool writes it
    ringmain_bench_guarded_semaphore = 0;
[[gnu::section(".probes"), gnu::used]] volatile unsigned short  // NOLINT: as above
    ringmain_bench_event_semaphore = 0;
}

namespace ringmain::bench {
namespace {

void mark(Repetition& repetition) {
  std::uint64_t number = 0;
  repetition.value(time_each([&number] {
    STAP_PROBE4(ringmain_bench, event, number, std::int64_t{0}, number, number);
    benchmark::ClobberMemory();
  }));
}

/// As a program guards a mark whose arguments are dear.
void guarded(Repetition& repetition) {
  std::uint64_t number = 0;
  repetition.value(time_each([&number] {
    if (ringmain_bench_guarded_semaphore != 0) [[unlikely]] {
      ++number;
      STAP_PROBE4(ringmain_bench, guarded, number, std::int64_t{0}, number, number);
    }
    benchmark::ClobberMemory();
  }));
  if (number != 0) repetition.fail("something is attached to the mark");
}

[[maybe_unused]] const bool kAdded =
    add("unheard", "sdt_mark", {}, mark) && add("unheard", "sdt_mark_guarded", {}, guarded);

}  // namespace
}  // namespace ringmain::bench
