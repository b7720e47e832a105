// How does `ringmain post-mortem` tell what it has read: to a person, to a program, to a sink?
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/flight/rings.hpp"

namespace ringmain::cli {

/// A text of the file's header, which ends with a zero if it is shorter than its place.
template <std::size_t kSize>
[[nodiscard]] std::string_view text_of(const std::array<char, kSize>& bytes) {
  return {bytes.data(),
          static_cast<std::size_t>(std::find(bytes.begin(), bytes.end(), '\0') - bytes.begin())};
}

/// "rank 3 of 8", or "" where no launcher has said one: torchrun itself is no rank 0.
[[nodiscard]] inline std::string rank_of(const engine::flight::FixedHeader& head) {
  const std::string_view launcher = text_of(head.launcher);
  if (launcher.empty() || launcher == "none") return "";
  return "rank " + std::to_string(head.rank) + " of " + std::to_string(head.world_size);
}

/// For a person; the last `events` of each ring.
[[nodiscard]] std::string post_mortem_text(const flight::RingDump& dump, std::size_t events);
/// One line with all of it, and the last `events` of each ring.
[[nodiscard]] std::string post_mortem_json(const flight::RingDump& dump, std::size_t events);
/// A picture (SVG): a row for each thread, with the last `events` of each ring.
[[nodiscard]] std::string post_mortem_svg(const flight::RingDump& dump, std::size_t events);
/// All events of the dumps that no guard refused, on a bus of its own with these sinks; those of a
/// publisher in the order of their times.
/// Returns a sentence if that failed.
[[nodiscard]] std::string post_mortem_to_sinks(const std::vector<flight::RingDump>& dumps,
                                               const std::vector<std::string>& sinks);

}  // namespace ringmain::cli
