// May the bus still be used? A program may destroy it as soon as it has detached the wrapper, while
// a call of NCCL's that began before is still under way.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ringmain::nccl::detail {

/// Who uses a bus is inside, and whoever detaches waits for them. What keeps parts of the bus alive
/// by itself, as communicators and ledgers do, needs none of it. Threads: any.
class BusUse {
 public:
  /// While it lives the bus is there. False: it may be gone. Entries nest.
  class In {
   public:
    explicit In(BusUse& of) noexcept : of_(of.enter() ? &of : nullptr) {}
    In(const In&) = delete;
    In& operator=(const In&) = delete;
    ~In() {
      if (of_ != nullptr) of_->leave();
    }
    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

   private:
    BusUse* const of_;
  };

  /// Nobody enters any more, and those inside have left; but a thread that is inside itself, or
  /// acts for a subscriber, which one inside may wait for, does not wait.
  void close() noexcept;

 private:
  bool enter() noexcept;
  void leave() noexcept;

  std::mutex mutex_;
  std::condition_variable empty_;
  std::uint32_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace ringmain::nccl::detail
