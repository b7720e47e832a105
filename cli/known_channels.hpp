// A pattern that matches no channel: what was probably meant?
//
// The names that are known before anything runs are those of ringmain's own events. A program has
// others, and a source of a plugin's may, so only where the set is closed is such a pattern wrong.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ringmain::cli {

/// Of all events that come with ringmain.
[[nodiscard]] std::span<const std::string_view> known_channels();

[[nodiscard]] bool matches_one(std::string_view pattern, std::span<const std::string_view> names);

/// "; did you mean '…'?" with the nearest pattern that matches one of `names`, or "": for
/// "collectve.*" it is "collective.*", for "collective" it is "collective.>".
[[nodiscard]] std::string nearest_pattern(std::string_view pattern,
                                          std::span<const std::string_view> names);

/// A warning on standard error for each pattern of `option` that is nearly the name of a known
/// channel, and matches none.
void say_misspelt(std::string_view option, std::span<const std::string> patterns);

}  // namespace ringmain::cli
