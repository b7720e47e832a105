// Whom does a door's thread call, of those that are there? Functions that come and go in any
// thread, and are called with no lock held.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../../engine/system/fork.hpp"

namespace ringmain::detail {

/// It holds none of its functions: each lives as long as whoever has what add() returned, and for
/// the end of a call that is running. Threads: any.
template <class Fn>
class RequestList {
 public:
  using Held = std::shared_ptr<const Fn>;

  /// Throws std::bad_alloc.
  [[nodiscard]] Held add(Fn made) {
    auto held = std::make_shared<const Fn>(std::move(made));
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const One& one) { return one.fn.expired(); });
    all_.push_back({++last_, held});
    return held;
  }
  /// `call(fn)` for each that is there when its turn comes. Allocates nothing.
  template <class F>
  void for_each(F call) {
    std::uint64_t number = 0;
    while (const Held fn = after(number)) call(*fn);
  }

 private:
  struct One {
    std::uint64_t number;  // rising
    std::weak_ptr<const Fn> fn;
  };
  /// The first that is there still and comes after that one, whose number it sets.
  [[nodiscard]] Held after(std::uint64_t& number) noexcept {
    const std::lock_guard lock(mutex_);
    for (const One& one : all_) {
      if (one.number <= number) continue;
      number = one.number;
      if (auto fn = one.fn.lock()) return fn;
    }
    return nullptr;
  }

  engine::ForkMutex mutex_{engine::kForkBuses};
  std::uint64_t last_ = 0;
  std::vector<One> all_;
};

}  // namespace ringmain::detail
