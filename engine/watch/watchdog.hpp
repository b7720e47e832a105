// For how long has the same call been seen running? Looked at from outside, with no clock in it.
//
// A drainer shows one word per turn (a run of up to 256 events handed to one subscriber): the
// turn's serial number and the subscriber's watch id. Two looks that find the same word have found
// the same turn. A gap between two looks that is far longer than was asked for does not count: then
// the process or the housekeeper was stopped, not the callback slow.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ringmain::engine {

/// What a drainer shows while it calls: serial << 32 | watch id; 0 when it calls nobody.
constexpr std::uint64_t call_word(std::uint32_t serial, std::uint32_t watch_id) noexcept {
  return std::uint64_t{serial} << 32 | watch_id;
}
constexpr std::uint32_t watch_id_of(std::uint64_t call_word) noexcept {
  return static_cast<std::uint32_t>(call_word);
}

/// The housekeeper's own progress.
class LookClock {
 public:
  /// Notes a look at `now_ns`, which was to come `asked_ns` after the last one. Returns how much of
  /// the gap counts.
  std::int64_t look(std::int64_t now_ns, std::int64_t asked_ns) noexcept {
    const std::int64_t gap = now_ns - last_ns_;
    const bool first = last_ns_ == 0;
    last_ns_ = now_ns;
    paused_ = !first && gap > asked_ns + std::max<std::int64_t>(asked_ns, kSlackNs);
    // Where every gap is too long the machine is overloaded: ask for longer gaps until they are
    // kept.
    stretch_ = paused_ ? std::min(2 * stretch_, std::int64_t{kStretchMax}) : 1;
    return first || paused_ ? 0 : gap;
  }
  /// How many times the usual gap is to be asked for next.
  [[nodiscard]] std::int64_t stretch() const noexcept { return stretch_; }

 private:
  enum : std::int64_t { kSlackNs = 20'000'000, kStretchMax = 16 };
  std::int64_t last_ns_ = 0;
  std::int64_t stretch_ = 1;
  bool paused_ = false;
};

/// One drainer's turn, over many looks.
class CallClock {
 public:
  /// Returns for how long the turn in `word` has been running at least; 0: it was not seen before.
  std::int64_t look(std::uint64_t word, std::int64_t counted_ns) noexcept {
    seen_ns_ = word == word_ && watch_id_of(word) != 0 ? seen_ns_ + counted_ns : 0;
    if (word != word_) told_ = false;
    word_ = word;
    return seen_ns_;
  }
  /// True at the first call in each turn.
  [[nodiscard]] bool tell() noexcept { return !told_ && (told_ = true); }

 private:
  std::uint64_t word_ = 0;
  std::int64_t seen_ns_ = 0;
  bool told_ = false;
};

}  // namespace ringmain::engine
