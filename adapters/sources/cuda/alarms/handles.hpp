// Which events, or streams, were made and not deleted, and by which calls?
//
// A deletion is told before it is done, and CUDA may refuse it: so what it ended is kept until its
// handle comes again, there is no room, or more deletions came than there are threads.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "bus/text.hpp"

namespace ringmain::cuda::alarms {

struct Made {
  std::uint64_t handle = 0;
  std::uint64_t number = 0;  // of all that were made here
  std::int64_t step = -1;
  std::uint32_t generation = 0;
  std::uint32_t context = 0;
  std::int32_t device = -1;
  std::int32_t thread = 0;
  Name api;
};
struct Left {
  Made first;
  std::uint64_t count = 0;
};

/// Threads: one at a time.
class Handles {
 public:
  explicit Handles(std::size_t most) : most_(most) {}

  /// False: there is no room.
  [[nodiscard]] bool make(Made made) {
    made.number = ++numbers_;
    if (all_.size() >= most_ && all_.count(made.handle) == 0) {
      while (all_.size() >= most_ && oldest_ != latest_) forget_oldest();
      if (all_.size() >= most_) return false;
    }
    all_[made.handle] = {made, false};
    return true;
  }
  /// `done` false: CUDA refused, and it lives on.
  void end(std::uint64_t handle, bool done) noexcept {
    const auto found = all_.find(handle);
    if (found == all_.end()) return;
    found->second.deleted = done;
    if (!done) return;
    if (latest_ - oldest_ == deleted_.size()) forget_oldest();
    deleted_[latest_++ % deleted_.size()] = handle;
  }
  /// What is left of those that `is_over` picks, by the calls that made them, the earliest first.
  /// They are forgotten.
  template <class F>
  std::vector<Left> take_left(F is_over) {
    std::vector<Left> left;
    for (auto one = all_.begin(); one != all_.end();) {
      const Made& made = one->second.made;
      if (!is_over(made)) {
        ++one;
        continue;
      }
      if (!one->second.deleted) add(left, made);
      one = all_.erase(one);
    }
    std::sort(left.begin(), left.end(),
              [](const Left& a, const Left& b) { return a.first.number < b.first.number; });
    return left;
  }
  void clear() noexcept {
    all_.clear();
    oldest_ = latest_;
  }

 private:
  struct Entry {
    Made made;
    bool deleted = false;
  };
  static void add(std::vector<Left>& left, const Made& made) {
    for (Left& one : left) {
      if (one.first.api != made.api) continue;
      if (made.number < one.first.number) one.first = made;
      ++one.count;
      return;
    }
    left.push_back({made, 1});
  }

  /// Unless it lives again.
  void forget_oldest() noexcept {
    const auto one = all_.find(deleted_[oldest_++ % deleted_.size()]);
    if (one != all_.end() && one->second.deleted) all_.erase(one);
  }

  const std::size_t most_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<std::uint64_t, Entry> all_;
  std::array<std::uint64_t, 1024> deleted_{};  // a ring, the oldest first
  std::size_t oldest_ = 0, latest_ = 0;
};

}  // namespace ringmain::cuda::alarms
