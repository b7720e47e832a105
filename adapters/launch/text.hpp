// How do a run's sentences name a process and a time? The same in every locale, as the program may
// have set one.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bus/bus.hpp"
#include "bus/rank.hpp"

namespace ringmain::run {

/// How long a process waits at its end for sinks and sources: RINGMAIN_END_S, or two seconds. Says
/// so if the variable is not a number.
[[nodiscard]] nanoseconds end_limit();
/// "0.5 s".
[[nodiscard]] std::string in_seconds(nanoseconds limit);
/// "train (pid 71, rank 3)".
[[nodiscard]] std::string process_title(const RankIdentity& me);
/// The sentence that a sink could not open, and why.
[[nodiscard]] std::string no_sink(const RankIdentity& me, std::string_view sink,
                                  std::string_view why);
/// How many events the program has published.
[[nodiscard]] std::uint64_t events_of(const Stats& stats);
/// The line of --summary. `lost`: what the sinks lost; `attached`: by source, "" or why not.
[[nodiscard]] std::string summary(const RankIdentity& me, const Stats& stats, std::uint64_t lost,
                                  const std::vector<std::string>& sources,
                                  const std::map<std::string, std::string>& attached);

}  // namespace ringmain::run
