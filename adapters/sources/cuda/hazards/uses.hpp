// Which uses of each buffer must a later one be compared with? Of each stream the latest read and
// the latest write of every byte. Memory is kept in pieces, which are cut where uses begin and end.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "adapters/sources/cuda/cuda_hazards.hpp"
#include "adapters/sources/cuda/hazards/clock.hpp"

namespace ringmain::cuda::hazards {

struct KeptUse {
  Use use;
  std::size_t place = 0;    // of its stream
  std::uint64_t count = 0;  // the how many-th use of that stream it is
};

/// Mostly few, and then without an allocation for each.
class Numbers {
 public:
  /// False: it was there.
  bool add(std::uint64_t number) {
    if (std::find(few_.begin(), few_.end(), number) != few_.end()) return false;
    if (few_.size() == kFew) return many_.insert(number).second;
    few_.push_back(number);
    return true;
  }

 private:
  static constexpr std::size_t kFew = 32;
  std::vector<std::uint64_t> few_;
  std::unordered_set<std::uint64_t> many_;
};

/// Threads: one at a time.
class Uses {
 public:
  explicit Uses(std::size_t most) : most_(most) {}

  /// Hands each kept use that shares a byte with `use` and lies on another stream to `compare`,
  /// once, and keeps `use`.
  template <class F>
  void put(const KeptUse& use, F compare) {
    const std::uint64_t begin = use.use.address;
    const std::uint64_t end = end_of(begin, use.use.bytes);
    if (begin == end) return;
    cut(begin);
    cut(end);
    fill(begin, end);
    Numbers compared;
    for (auto piece = pieces_.find(begin); piece != pieces_.end() && piece->first < end; ++piece) {
      for (const KeptUse& kept : piece->second.uses) {
        if (kept.place == use.place || !compared.add(kept.use.number)) continue;
        compare(kept.use, kept.place, kept.count);
      }
      keep(piece->second, use);
    }
  }
  /// What was told of these bytes is of a buffer that is no more.
  void clear(std::uint64_t address, std::uint64_t bytes);
  /// Makes room where there is none: what `host` holds comes before everything to come, and then
  /// all. How many uses were given up that might have been needed.
  std::size_t make_room(const Clock& host);
  void clear() noexcept {
    pieces_.clear();
    kept_ = 0;
  }

 private:
  struct Piece {
    std::uint64_t end = 0;
    std::vector<KeptUse> uses;
  };
  static std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) noexcept {
    return bytes > ~std::uint64_t{0} - begin ? ~std::uint64_t{0} : begin + bytes;
  }
  void cut(std::uint64_t at);
  void fill(std::uint64_t begin, std::uint64_t end);
  void keep(Piece& piece, const KeptUse& use);

  const std::size_t most_;
  std::size_t kept_ = 0;                   // in all pieces
  std::map<std::uint64_t, Piece> pieces_;  // by their first byte; none overlap
};

}  // namespace ringmain::cuda::hazards
