// What engine/deliver/pull.cpp asks of a channel, and nothing else: for pull_relacy.cpp, where a
// whole channel would be too large to search. Found before the real header of this name.
#pragma once
#include "engine/deliver/pull.hpp"

namespace ringmain::engine {

struct ChannelHost {
  Atomic<std::uint32_t> quit{0};
  enum : std::size_t { kAll = ~std::size_t{0} };
  [[nodiscard]] static bool manual() noexcept { return false; }
  static std::size_t deliver(std::size_t, std::int64_t) noexcept { return 0; }
  [[nodiscard]] bool stopped() const noexcept { return quit.load(std::memory_order_acquire) != 0; }
};

class ChannelCore {
 public:
  enum : int { kLanes = 2 };
  struct Lane {
    Atomic<std::uint32_t> word{0};
    std::uint32_t consumed = 0;  // the reader's own
  };
  struct {
    Atomic<std::uint32_t> leased{1};
  } line;
  Pull pull;
  Lane lanes[kLanes];
  ChannelHost bus;

  [[nodiscard]] ChannelHost& host() noexcept { return bus; }
  [[nodiscard]] static bool inert() noexcept { return false; }
  [[nodiscard]] bool anything_left() const noexcept {
    for (const Lane& lane : lanes) {
      if (lane.word.load(std::memory_order_relaxed) != lane.consumed) return true;
    }
    return false;
  }
};

}  // namespace ringmain::engine
