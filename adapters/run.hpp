// What happens in a process that `ringmain run` started? libringmain_run opens the named sinks on
// the process's bus, and the sources that live in the process.
//
// It gets there by LD_PRELOAD where a source or a sink needs it from the start, or because a
// source's own library (an injected or preloaded one) is linked with it and calls join().
//
// Progress: blocking, all of it: it reads the environment, takes a lock or waits.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "../bus/bus.hpp"

#include "run.h"  // the same for C

namespace ringmain::run {

/// For a source's library: the bus to publish on, with its sinks open; nullptr where this process
/// belongs to no run, or not to one that asked for this source. Makes threads at the first call;
/// idempotent. Threads: any.
[[nodiscard]] Bus* join(std::string_view source);
/// What stands after the source's colon in the run's call; "" where nothing does.
[[nodiscard]] std::string argument_of(std::string_view source);
/// For a source that could not attach: one sentence for standard error and the summary.
void could_not_attach(std::string_view source, std::string_view why);

/// For a source that has joined: `say_last` is called once at the end of the process, in a thread
/// of ringmain's, and what it publishes is in the sinks. It returns by its limit; a thread of the
/// program may hold any lock for ever by then. Not called before an exec. Threads: any.
void at_end(std::function<void(nanoseconds limit)> say_last);

/// Brings what was published so far to the sinks. Returns by the limit.
void flush(nanoseconds limit);
/// Ends sources and sinks, once; the end of the process calls it. In a forked child it does
/// nothing.
void finish();

}  // namespace ringmain::run
