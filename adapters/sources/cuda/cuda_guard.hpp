// Which of a thread's calls is the outermost one? A call of the runtime (cudaMalloc) makes calls of
// the driver (cuMemAlloc), and CUPTI tells of all of them; what the program called is one event.
//
// Each thread counts how deep it is. CUPTI has a slot for each call, in which the entry leaves a
// tag and the exit finds it: an exit is believed only with the tag of this thread's call under way.
// So an exit whose entry was not heard does nothing, and an entry whose exit is never heard (its
// number was switched off meanwhile, or the source left) mutes nobody: a newer entry finds that
// out.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "events/terms/cuda_call_table.hpp"

namespace ringmain::cuda {

/// A number's switch: odd while its calls are to be told. Only the thread that holds the source's
/// lock changes it, before it enables the number and before it disables it; each time the value
/// grows, so that a call can tell whether its own number was switched off after its entry.
class Switch {
 public:
  [[nodiscard]] std::uint32_t look() const noexcept { return turns_; }
  [[nodiscard]] static constexpr bool on(std::uint32_t turns) noexcept { return turns % 2 != 0; }
  [[nodiscard]] bool on() const noexcept { return on(turns_); }
  void turn() noexcept { ++turns_; }

 private:
  std::atomic<std::uint32_t> turns_{0};
};
using Switches = Switch[call_rows().size()];

/// The outermost call that a thread is in.
struct CallUnderWay {
  const CallRow* row = nullptr;
  std::int64_t began_ns = 0;      // 0: nobody listened when it began
  std::uint64_t correlation = 0;  // 0: not drawn yet
  bool muted = false;             // it is a subscriber's own
  bool context_told = false;      // the change of a context that it makes was published
  bool released = false;          // a live handle died at its entry
};

/// Of one thread, used by it alone. Trivially destructible: calls may come after a thread's own
/// objects are gone.
class Guard {
 public:
  /// At the entry of a call whose switch was seen as `turns`. Returns the tag to leave in its slot;
  /// outermost() is true until the next call begins. Tags of other epochs are not believed.
  std::uint64_t enter(const CallRow& row, std::uint32_t turns, const Switches& switches,
                      std::uint32_t epoch) noexcept {
    if (epoch_ != epoch || (depth_ > 0 && switches[row_index()].look() != turns_)) depth_ = 0;
    if (depth_ == 0) {
      epoch_ = epoch;
      serial_ = ++last_serial_;
      turns_ = turns;
      call_ = {.row = &row};
    }
    if (depth_ < kDepthMax) ++depth_;
    return tag(depth_);
  }
  /// Is the call that has just been entered the thread's outermost?
  [[nodiscard]] bool outermost() const noexcept { return depth_ == 1; }
  /// At an exit with the tag that was found in its slot. True: it was the outermost call's, and
  /// call() says which that was.
  bool leave(std::uint64_t found) noexcept {
    const auto level = static_cast<std::uint32_t>(found % (kDepthMax + 1));
    if (level == 0 || level > depth_ || found != tag(level)) return false;
    depth_ = level - 1;  // and of calls within it, whose exits were not heard
    return depth_ == 0;
  }
  /// Is the thread in a call, as far as can be told? Then call() is the outermost.
  [[nodiscard]] bool under_way(std::uint32_t epoch, const Switches& switches) const noexcept {
    return depth_ > 0 && epoch_ == epoch && switches[row_index()].look() == turns_;
  }
  [[nodiscard]] CallUnderWay& call() noexcept { return call_; }

 private:
  friend class Aside;
  static constexpr std::uint32_t kDepthMax = 255;

  [[nodiscard]] std::size_t row_index() const noexcept {
    return static_cast<std::size_t>(call_.row - call_rows().data());
  }
  /// 20 bits of the epoch, 36 of the thread's number of the outermost call, 8 of the depth.
  [[nodiscard]] std::uint64_t tag(std::uint32_t depth) const noexcept {
    return std::uint64_t{epoch_} << 44 | (serial_ << 8 & 0xfff'ffff'ff00) | depth;
  }

  CallUnderWay call_;
  std::uint64_t serial_ = 0;
  std::uint64_t last_serial_ = 0;
  std::uint32_t turns_ = 0;  // of the outermost call's switch at its entry
  std::uint32_t epoch_ = 0;
  std::uint32_t depth_ = 0;
};

/// While it lives the thread is in no call: an event is published, and inline subscribers may call
/// CUDA. Costs nothing where the thread is in none anyway.
class Aside {
 public:
  explicit Aside(Guard& guard) noexcept : guard_(guard) {
    if (guard.depth_ == 0) return;
    kept_ = guard;
    guard.depth_ = 0;
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    if (!kept_) return;
    const std::uint64_t last = guard_.last_serial_;
    guard_ = *kept_;
    guard_.last_serial_ = last;
  }

 private:
  Guard& guard_;
  std::optional<Guard> kept_;
};

}  // namespace ringmain::cuda
