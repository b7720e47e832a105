// What does a channel ask of its bus? Is it being stopped, what is the next ticket, does a thread
// wait for what is consumed? Publishers and workers read these, so the words lie here. Requests to
// be attended, let go of or added are rare, so they are virtual: the bus's engine implements them,
// channels know no workers, and tests may give them a host without any.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../subscribe/retire_list.hpp"
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "../system/ref.hpp"
#include "../watch/house_inbox.hpp"

namespace ringmain::engine {

class ChannelCore;
class OwnThreads;
class SubscriberList;

/// Threads: any.
class ChannelHost : public Counted {
 public:
  enum : std::size_t { kAll = ~std::size_t{0} };

  // --- what publishers and workers read ---
  [[nodiscard]] bool aborting() const noexcept {
    return aborting_.load(std::memory_order_relaxed);
  }  // relaxed: soon is enough
  [[nodiscard]] bool stopped() const noexcept {
    return quit_.load(std::memory_order_acquire) != 0;  // q.over
  }
  /// The other half of l.waiting: callbacks are over, and a thread may wait for that.
  void consumed_something() noexcept {
    if (waiters_.load(std::memory_order_relaxed) != 0)
      tell_waiters();  // relaxed: l.waiting and asymmetric_fence_heavy() order it
  }
  /// From here to end_waiting() a thread waits for what is consumed. After this call it must make
  /// every thread pass a barrier.
  void begin_waiting() noexcept { waiters_.fetch_add(1, std::memory_order_seq_cst); }  // l.waiting
  void end_waiting() noexcept {
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }  // relaxed: a worker that sees it late wakes nobody
  [[nodiscard]] bool anybody_waits() const noexcept {
    return waiters_.load(std::memory_order_seq_cst) != 0;  // l.waiting
  }
  /// Moves when waiting threads are told.
  [[nodiscard]] Atomic<std::uint32_t>& done_key() noexcept { return done_key_; }
  /// The bus's next number: a publish that begins after this has returned gets a larger one.
  [[nodiscard]] std::uint64_t take_ticket() noexcept {
    return tickets_.fetch_add(1, std::memory_order_acq_rel);  // t.counter: busy was said before
  }
  /// Every later ticket is at least this. A publisher that has a smaller one is seen as busy, or
  /// as done.
  [[nodiscard]] std::uint64_t tickets_taken() const noexcept {
    return tickets_.load(std::memory_order_acquire);  // t.counter
  }
  /// A bus without threads: the thread that calls deliver() does the workers' work.
  [[nodiscard]] bool manual() const noexcept { return manual_; }
  /// Manual: what stamps say instead of the clock; nullptr with threads.
  [[nodiscard]] Atomic<std::int64_t>* manual_time() noexcept {
    return manual_ ? &manual_time_ns_ : nullptr;
  }
  /// Inline subscribers that a publishing thread found closed as it left them.
  [[nodiscard]] RetireList& retire_list() noexcept { return retire_list_; }
  [[nodiscard]] HouseInbox& inbox() noexcept { return inbox_; }

  // --- what happens seldom ---
  /// Adds a channel to the bus. False: it has as many as it can.
  [[nodiscard]] virtual bool add(ChannelCore& channel) noexcept = 0;
  /// A mailbox without feeders and reader: it is let go of once nothing is left in it.
  virtual void retire(ChannelCore& channel) noexcept = 0;
  /// By a publisher that found its channel unleased. `woke`: what it has woken last (Lane::woke).
  virtual void signal(ChannelCore& channel, std::uint64_t& woke) noexcept = 0;
  /// Something was put on the retire list.
  virtual void wake_reclaimer() noexcept = 0;
  /// There is a realtime lane, whose publisher wakes no worker.
  virtual void watch_realtime() noexcept = 0;
  virtual void end_rests() noexcept = 0;
  /// Frees the snapshots of `list` that no drainer reads. Under its channel's lock. Throws
  /// std::bad_alloc.
  virtual void reclaim(SubscriberList& list) const = 0;
  /// Does any drainer show a call of it? As ShownCalls::calling().
  [[nodiscard]] virtual bool calling(const Subscriber& subscriber) const noexcept = 0;
  /// Manual: hands out up to `max` queued events in the calling thread, those included that
  /// callbacks publish meanwhile. Fixed order: round by round, by channel index, then by lane, at
  /// most a batch of each. Returns how many; 0 inside a callback. One caller at a time runs.
  virtual std::size_t deliver(std::size_t max, std::int64_t limit_ns = -1) noexcept = 0;
  [[nodiscard]] virtual OwnThreads& own_threads() noexcept = 0;

 protected:
  explicit ChannelHost(bool manual) noexcept : manual_(manual) {}

  void tell_waiters() noexcept;

  const bool manual_;
  alignas(kLineBytes) Atomic<std::uint32_t> waiters_{0};
  Atomic<bool> aborting_{false};
  Atomic<std::uint32_t> quit_{0};
  RetireList retire_list_;
  alignas(kLineBytes) Atomic<std::uint32_t> done_key_{0};
  alignas(kLineBytes) Atomic<std::uint64_t> tickets_{1};
  alignas(kLineBytes) HouseInbox inbox_;
  Atomic<std::int64_t> manual_time_ns_{1'000'000'000};
};

}  // namespace ringmain::engine
