// Peer: LTTng-UST tracepoints, which are on only while a session of its daemon wants them. While
// off, one of 32 bytes is a peer of row 1; while on it records and has no callbacks, in a session
// in snapshot mode (bench/scripts/with_lttng.sh): one of 48 bytes is the peer of 13c, one of 32
// stands beside publishes that read the clock as it does.
#include <chrono>
#include <cstdlib>
#include <thread>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/peers/lttng_provider.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

void tracepoint_off(Repetition& repetition) {
  std::uint64_t number = 0;
  repetition.value(time_each([&number] {
    lttng_ust_tracepoint(ringmain_bench, event, number, 0, number, number);
    benchmark::ClobberMemory();
  }));
}

template <class Record>
void tracepoint_on(Repetition& repetition, Record record) {
  for (int i = 0; !lttng_ust_tracepoint_enabled(ringmain_bench, recorded) ||
                  !lttng_ust_tracepoint_enabled(ringmain_bench, event);
       ++i) {
    if (i == 5000) return repetition.fail("the session did not turn its tracepoint on within 5 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  enum : int { kStretch = 4096 };
  for (int i = 0; i < kStretch; ++i) record();  // touches its buffers
  repetition.value(time_stretches<kStretch>(record, [] {}));
}

void six_words(Repetition& repetition) {
  std::uint64_t number = 0;
  tracepoint_on(repetition, [&number] {
    ++number;
    lttng_ust_tracepoint(ringmain_bench, recorded, number, 0, number, number, number, number);
  });
}
void four_words(Repetition& repetition) {
  std::uint64_t number = 0;
  tracepoint_on(repetition, [&number] {
    ++number;
    lttng_ust_tracepoint(ringmain_bench, event, number, 0, number, number);
  });
}

[[maybe_unused]] const bool kAdded = add("unheard", "lttng_ust_off", {}, tracepoint_off);
/// with_lttng.sh says that there is a session.
[[maybe_unused]] const bool kAddedOn = std::getenv("RINGMAIN_BENCH_LTTNG") != nullptr &&
                                       add("flight", "lttng_ust_on", {}, six_words) &&
                                       add("publish_alone_timed", "lttng_ust_on", {}, four_words);

}  // namespace
}  // namespace ringmain::bench
