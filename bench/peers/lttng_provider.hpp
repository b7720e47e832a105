// The tracepoints of bench/peers/lttng.cpp, in the form that LTTng's macros want: read several
// times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ringmain_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench/peers/lttng_provider.hpp"

#if !defined(RINGMAIN_BENCH_LTTNG_PROVIDER) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RINGMAIN_BENCH_LTTNG_PROVIDER
#include <cstdint>
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    ringmain_bench, event,
    LTTNG_UST_TP_ARGS(std::uint64_t, number, std::int64_t, sent, std::uint64_t, a, std::uint64_t,
                      b),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(std::uint64_t, number, number)
                            lttng_ust_field_integer(std::int64_t, sent, sent)
                                lttng_ust_field_integer(std::uint64_t, a, a)
                                    lttng_ust_field_integer(std::uint64_t, b, b)))
LTTNG_UST_TRACEPOINT_EVENT(
    ringmain_bench, recorded,
    LTTNG_UST_TP_ARGS(std::uint64_t, number, std::int64_t, sent, std::uint64_t, a, std::uint64_t, b,
                      std::uint64_t, c, std::uint64_t, d),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(std::uint64_t, number, number)
                            lttng_ust_field_integer(std::int64_t, sent, sent)
                                lttng_ust_field_integer(std::uint64_t, a, a)
                                    lttng_ust_field_integer(std::uint64_t, b, b)
                                        lttng_ust_field_integer(std::uint64_t, c, c)
                                            lttng_ust_field_integer(std::uint64_t, d, d)))
#endif
#include <lttng/tracepoint-event.h>
