#include "adapters/launch/text.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "engine/publish/missed.hpp"

#include "adapters/launch/standard_error.hpp"
#include "adapters/registry.hpp"

namespace ringmain::run {

nanoseconds end_limit() {
  constexpr double kDefaultS = 2;
  constexpr double kMostS = 3600;
  const char* const set = ::secure_getenv("RINGMAIN_END_S");
  if (set == nullptr) return std::chrono::seconds(2);
  const std::string_view text = set;
  double seconds = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (fault != std::errc() || end != text.data() + text.size() || !(seconds > 0)) {
    write_sentence("ringmain: RINGMAIN_END_S wants seconds, such as 0.5, and not '" +
                   std::string(text.substr(0, 32)) + "'; it is 2\n");
    seconds = kDefaultS;
  }
  return nanoseconds(static_cast<std::int64_t>(std::min(seconds, kMostS) * 1e9));
}

std::string in_seconds(nanoseconds limit) {
  char text[32];
  const double seconds = static_cast<double>(limit.count()) / 1e9;
  const auto end = std::to_chars(text, text + sizeof text, seconds, std::chars_format::fixed).ptr;
  return std::string(text, end) + " s";
}

std::string process_title(const RankIdentity& me) {
  std::string title =
      std::string(::program_invocation_short_name) + " (pid " + std::to_string(me.pid);
  if (me.launcher != "none") title += ", rank " + std::to_string(me.rank);
  return title + ")";
}

std::string no_sink(const RankIdentity& me, std::string_view sink, std::string_view why) {
  return "sink " + std::string(registry::Spec::of(sink).name) + " could not open in " +
         process_title(me) + ": " + std::string(why);
}

namespace {
/// What the bus publishes about itself does not count as the program's.
bool is_the_programs(const ChannelStats& c) {
  return !c.mailbox && c.offered != 0 && !c.name.starts_with("bus.");
}
}  // namespace

std::uint64_t events_of(const Stats& stats) {
  std::uint64_t events = 0;
  for (const ChannelStats& c : stats.channels) events += is_the_programs(c) ? c.offered : 0;
  return events;
}

std::string summary(const RankIdentity& me, const Stats& stats, std::uint64_t lost,
                    const std::vector<std::string>& sources,
                    const std::map<std::string, std::string>& attached) {
  const std::uint64_t events = events_of(stats);
  std::vector<std::pair<std::uint64_t, std::string>> busiest;
  for (const ChannelStats& c : stats.channels) {
    if (!is_the_programs(c)) continue;
    lost += c.full + c.closed + c.no_memory + c.too_deep + c.evicted + c.discarded + c.pending;
    busiest.emplace_back(c.offered, c.name);
  }
  std::sort(busiest.rbegin(), busiest.rend());
  std::string text = process_title(me) + ": " + std::to_string(events) +
                     (events == 1 ? " event, " : " events, ") + std::to_string(lost) + " lost";
  if (const std::uint64_t missed = engine::missed(); missed != 0)
    text += ", " + std::to_string(missed) + " published in forked children, not heard";
  const char* before = ": ";
  for (const auto& [count, name] : busiest) {
    if (text.size() > 200) break;
    text += std::exchange(before, ", ") + name + " " + std::to_string(count);
  }
  for (const std::string& source : sources) {
    const std::string name(registry::Spec::of(source).name);
    const auto found = attached.find(name);
    if (found == attached.end()) text += "; " + name + " was never used by the program";
    if (found != attached.end() && !found->second.empty()) text += "; " + name + " did not attach";
  }
  return text;
}

}  // namespace ringmain::run
