// How does PyTorch's analyzer compare a send with its receive?
//
// It looks for every operation on all members of its group, and of a batch knows one direction
// only. So each direction between two ranks is a group of those two there, "dp 0->1", in which
// their transfers count from 1; a batch is its members. Readers of ours take "transfers_of" and
// "between" of its pg_config, and have the group "dp" again.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/flight/fixed_text.hpp"

namespace ringmain::flight {

constexpr std::string_view kTransfersOf = "transfers_of";  // the group's name
constexpr std::string_view kBetween = "between";           // "0->1": ranks in that group

inline std::string between(std::int64_t from, std::int64_t to) {
  return std::to_string(from) + "->" + std::to_string(to);
}
/// The same without the heap, at the end of a text.
template <std::size_t N>
void add_between(FixedText<N>& to, std::int64_t from, std::int64_t receiver) noexcept {
  to += from;
  to += "->";
  to += receiver;
}
inline std::string transfer_group(std::string_view group, std::int64_t from, std::int64_t to) {
  return std::string(group) + " " + between(from, to);
}

/// Ranks within the group of the two, which the analyzer sorts by their ranks in the job.
struct WithinTwo {
  std::int64_t from, to;
};
constexpr WithinTwo within_two(std::int64_t from, std::int64_t to) noexcept {
  return from == to ? WithinTwo{0, 0} : from < to ? WithinTwo{0, 1} : WithinTwo{1, 0};
}

/// Numbers transfers one after the other, for each direction from 1. Directions that find no place
/// of their own are counted anew from the beginning. Allocates nothing.
class TransferNumbers {
 public:
  /// Of the entry at `at`, after those before it were asked for; `entry(i)` is the one at i.
  template <class EntryAt>
  std::int64_t next(std::size_t at, EntryAt entry) noexcept {
    const auto& mine = entry(at);
    const auto key = static_cast<std::uint64_t>(mine.group) << 40 ^
                     static_cast<std::uint64_t>(mine.from) << 20 ^
                     static_cast<std::uint64_t>(mine.to);
    Place& place = places_[(key * 0x9e3779b97f4a7c15u >> 32) % places_.size()];
    if (place.count != 0 && place.group == mine.group && place.from == mine.from &&
        place.to == mine.to)
      return ++place.count;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < at; ++i) {
      const auto& other = entry(i);
      count += is_transfer(other) && other.group == mine.group && other.from == mine.from &&
               other.to == mine.to;
    }
    place = {mine.group, mine.from, mine.to, count};
    return count;
  }
  template <class Entry>
  [[nodiscard]] static bool is_transfer(const Entry& entry) noexcept {
    return entry.is_p2p && entry.from >= 0 && entry.to >= 0;
  }

 private:
  struct Place {
    std::size_t group = 0;
    std::int64_t from = 0, to = 0;
    std::int64_t count = 0;  // 0: it is free
  };
  std::array<Place, 256> places_{};
};

}  // namespace ringmain::flight
