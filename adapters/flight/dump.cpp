#include "adapters/flight/dump.hpp"

#include <algorithm>
#include <charconv>

#include "adapters/flight/limits.hpp"

namespace ringmain::flight {

std::uint32_t Texts::number(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(all_.size());
  numbers_.emplace(all_.emplace_back(text), number);
  return number;
}

std::uint32_t MemberLists::number(std::vector<std::int64_t> ranks) {
  std::string text;
  for (const std::int64_t rank : ranks) text += std::to_string(rank) + ",";
  const auto [place, added] = by_text_.emplace(text, static_cast<std::uint32_t>(all_.size()));
  if (added) all_.push_back(std::move(ranks));
  return place->second;
}

std::optional<std::uint32_t> MemberLists::read(std::string_view text) {
  const auto known = by_text_.find("text " + std::string(text));
  if (known != by_text_.end()) return known->second;
  std::vector<std::int64_t> ranks;
  std::string_view rest = text;
  const auto skip_spaces = [&rest] {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
  };
  const auto take = [&rest, &skip_spaces](char c) {
    skip_spaces();
    if (!rest.starts_with(c)) return false;
    rest.remove_prefix(1);
    return true;
  };
  if (!take('[')) return std::nullopt;
  while (!take(']')) {
    skip_spaces();
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    if (error != std::errc() || rank < 0 || ranks.size() >= kMembersMax) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    ranks.push_back(rank);
    if (!take(',') && !rest.starts_with(']')) return std::nullopt;
  }
  skip_spaces();
  if (!rest.empty()) return std::nullopt;
  const std::uint32_t made = number(std::move(ranks));
  by_text_.emplace("text " + std::string(text), made);
  return made;
}

std::string_view to_string(EntryState state) noexcept {
  static constexpr std::string_view kNames[] = {"scheduled", "started", "completed"};
  return kNames[static_cast<std::size_t>(state)];
}

std::int64_t Dump::newest_ns() const noexcept {
  std::int64_t newest = 0;
  for (const Entry& entry : entries) {
    newest = std::max({newest, entry.created_ns, entry.started_ns, entry.completed_ns});
  }
  return newest;
}

}  // namespace ringmain::flight
