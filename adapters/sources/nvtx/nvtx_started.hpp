// What is known of a range that one thread started and any thread may end?
//
// NVTX ends it by its id alone, so what its begin said is kept under the id, in a table of fixed
// size, without a lock. A program that ends one id twice, or in two threads at once, gets one end
// with a message and one without.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "events/nvtx.hpp"

#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::nvtx {

struct Started {
  std::int64_t begin_ns = 0;
  Message message;
  Part part;
};

class StartedRanges {
 public:
  static constexpr std::size_t kMax = 4096;  // under way at once; more are not kept

  /// False if there is no room. Progress: lock-free. Threads: any.
  bool keep(std::uint64_t id, const Started& started) noexcept {
    Place& home = places_[home_of(id)];
    for (std::size_t i = 0; i < kMax; ++i) {
      Place& place = places_[(home_of(id) + i) % kMax];
      std::uint64_t seen = kFree;
      if (place.id != kFree || !place.id.compare_exchange_strong(seen, kHeld)) continue;
      place.started = started;
      std::size_t farthest = home.farthest;
      while (farthest < i + 1 && !home.farthest.compare_exchange_weak(farthest, i + 1)) {
      }
      place.id = id;
      return true;
    }
    return false;
  }
  /// False if it was not kept. Progress: lock-free. Threads: any.
  bool take(std::uint64_t id, Started& out) noexcept {
    const std::size_t farthest = places_[home_of(id)].farthest;
    for (std::size_t i = 0; i < farthest; ++i) {
      Place& place = places_[(home_of(id) + i) % kMax];
      std::uint64_t seen = id;
      if (place.id != id || !place.id.compare_exchange_strong(seen, kHeld)) continue;
      out = place.started;
      place.id = kFree;
      return true;
    }
    return false;
  }

 private:
  enum : std::uint64_t { kFree = 0, kHeld = ~std::uint64_t{0} };  // no range has one of these
  struct Place {
    std::atomic<std::uint64_t> id{kFree};
    std::atomic<std::size_t> farthest{0};  // of those that should be in this place
    Started started;
  };
  static std::size_t home_of(std::uint64_t id) noexcept { return (id * 0x9e3779b97f4a7c15u) >> 52; }

  std::array<Place, kMax> places_{};
};

}  // namespace ringmain::nvtx
