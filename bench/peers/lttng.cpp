// Peer: an LTTng-UST tracepoint of 32 bytes, which is on only while a session of its daemon wants
// it. While off, it is a peer of row 1; while on, it records and has no callbacks.
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

[[maybe_unused]] const bool kAdded = add("unheard", "lttng_ust_off", {}, tracepoint_off);

}  // namespace
}  // namespace ringmain::bench
