#include "cli/known_channels.hpp"

#include <algorithm>
#include <vector>

#include "bus/pattern.hpp"

#include "events/all.hpp"

#include "adapters/registry_events.hpp"
#include "adapters/sources/heartbeat.hpp"

#include "cli/arguments.hpp"

namespace ringmain::cli {
namespace {

std::string_view take_token(std::string_view& left) {
  const std::string_view token = left.substr(0, left.find('.'));
  left.remove_prefix(std::min(token.size() + 1, left.size()));
  return token;
}

/// `pattern` with `name`'s words in the places of its own: "colective.*" and "collective.issued"
/// are "collective.*"; "" where they have not as many.
std::string shaped(std::string_view pattern, std::string_view name) {
  std::string made;
  while (!pattern.empty()) {
    if (name.empty()) return "";
    const std::string_view token = take_token(pattern);
    const std::string_view word = token == ">" ? name : take_token(name);
    if (token == ">") name = {};
    if (!made.empty()) made += '.';
    made += token == "*" || token == ">" ? token : word;
  }
  return name.empty() ? made : "";
}

template <class... E>
std::vector<std::string_view> names_of(EventList<E...>) {
  return {describe(EventOf<E>{}).name...};
}

}  // namespace

std::span<const std::string_view> known_channels() {
  static const std::vector<std::string_view> all = [] {
    auto names = names_of(AllEvents{});
    const auto others = names_of(EventList<heartbeat::Beat, registry::Registered, registry::Loaded,
                                           registry::LoadFailed, registry::Unregistered>{});
    names.insert(names.end(), others.begin(), others.end());
    return names;
  }();
  return all;
}

bool matches_one(std::string_view pattern, std::span<const std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return pattern_matches(pattern, name); });
}

std::string nearest_pattern(std::string_view pattern, std::span<const std::string_view> names) {
  std::vector<std::string> candidates;
  for (const std::string_view name : names) {
    std::string like = shaped(pattern, name);
    if (!like.empty() && matches_one(like, names)) candidates.push_back(std::move(like));
    if (pattern.find('.') == pattern.npos) {
      candidates.push_back(std::string(name.substr(0, name.find('.'))) + ".>");
    }
  }
  candidates.insert(candidates.end(), names.begin(), names.end());
  return did_you_mean(pattern, {candidates.begin(), candidates.end()});
}

void say_misspelt(std::string_view option, std::span<const std::string> patterns) {
  for (const std::string& pattern : patterns) {
    if (matches_one(pattern, known_channels())) continue;
    const std::string nearest = nearest_pattern(pattern, known_channels());
    if (nearest.empty()) continue;
    (void)failed(std::string(option) + ": '" + pattern +
                 "' records nothing, unless the program has a channel of its own that it matches" +
                 nearest);
  }
}

}  // namespace ringmain::cli
