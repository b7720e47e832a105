// What happens in a process that `ringmain run` started? libringmain_run opens the named sinks on
// the process's bus, and the sources that live in the process.
//
// It gets there by LD_PRELOAD where a source or a sink needs it from the start, or because a
// source's own library (an injected or preloaded one) is linked with it and calls join().
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../bus/bus.hpp"

#include "run.h"  // the same for C

namespace ringmain::run {

constexpr const char* kExceptVariable = "RINGMAIN_RUN_EXCEPT";
/// With a variable's name after it: what a run set it to, and what it was before. There only where
/// commands are left out, whose environment is put back.
constexpr const char* kSetPrefix = "RINGMAIN_RUN_SET_";
constexpr const char* kEarlierPrefix = "RINGMAIN_RUN_EARLIER_";

/// What was asked for; in the environment of every process of the command.
struct Plan {
  std::vector<std::string> sources;  // "name:argument"
  std::vector<std::string> sinks;
  std::vector<std::string> except;  // names of commands that take no part, nor what they start
  bool at_start = false;            // do not wait for the first join()
  bool at_use = false;              // nor for it alone: the first use of the process's bus will do
  bool summary = false;             // a line at the end of each process
  std::int64_t started_ns = 0;

  /// As environment variables. Nothing in it may hold a line's end.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> variables() const;
  /// nullopt where this process belongs to no run.
  static std::optional<Plan> from_environment();
};

/// False in a process of a run that is left out of it; says why at the first call. Threads: any.
[[nodiscard]] bool takes_part();

/// For a source's library: the bus to publish on, with its sinks open; nullptr where this process
/// belongs to no run, or not to one that asked for this source. Makes threads at the first call;
/// idempotent. Threads: any.
[[nodiscard]] Bus* join(std::string_view source);
/// What stands after the source's colon in the run's call; "" where nothing does.
[[nodiscard]] std::string argument_of(std::string_view source);
/// For a source that came in vain: one sentence for standard error and the summary.
void could_not_attach(std::string_view source, std::string_view why);

/// Brings what was published so far to the sinks. Returns by the limit.
void flush(nanoseconds limit);
/// Ends sources and sinks, once; the end of the process calls it. In a forked child it does
/// nothing.
void finish();

}  // namespace ringmain::run
