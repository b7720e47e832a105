// The workers of one bus: who drains which channel, who sleeps, who is woken.
//
// A channel is drained by the holder of its lease. A publisher that finds it unleased signals it in
// the list of ready channels and wakes one worker. Several workers take one channel at a time from
// there, the one whose turn it is; a worker that is about to run callbacks passes its other leases
// on, so that a stuck callback holds up one channel, and behind them that one too if others wait. A
// worker that is alone keeps them all, and goes round by itself. Before it parks it gives its
// leases up, says that it is parked, makes every thread pass a barrier (asymmetric_fence_heavy),
// and looks again. Protocol: tests/model/lane_protocol.md; edges S, E3, E4, L2, L3 by the same
// names.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../channel/channel_core.hpp"
#include "../subscribe/retire_list.hpp"
#include "../system/clock.hpp"
#include "../system/fork.hpp"
#include "../system/wait_strategy.hpp"
#include "../watch/housekeeper.hpp"
#include "drain.hpp"
#include "ready_channels.hpp"

namespace ringmain::engine {

struct WorkersOptions {
  unsigned count = 1;
  std::vector<int> cpus;  // empty: inherit
  int nice = 0;
  std::string name = "ringmain";
  WaitOptions wait;
  bool manual = false;  // no thread is started: whoever calls deliver() does the work
};

struct WorkerCounts {
  std::uint64_t parks = 0, wakes = 0, batches = 0, events = 0;
};

class OwnThread;
class Workers;

/// One worker thread's state. Its line with `key` is written by whoever wakes it.
struct Worker final : Drainer {
  /// Throws std::bad_alloc; from then on it allocates nothing.
  Worker(Workers& all, unsigned index, const WaitOptions& wait);
  void run() noexcept;
  void before_callbacks(ChannelCore& channel) noexcept override;

  alignas(kLineBytes) Atomic<std::uint32_t> key{0};
  /// Its last park's number, unlike any other park's of any worker, and never 0. 64 bits: at a park
  /// each microsecond it comes round in 18,000 years.
  Atomic<std::uint64_t> park_number{0};
  Atomic<const ChannelCore*> visiting{nullptr};  // about to ask for its lease: not to be freed
  Count parks, wakes, batches, events;
  std::thread thread;

 private:
  struct Held {
    ChannelCore* channel;
    std::uint32_t index;
  };

  void adopt() noexcept;
  void keep(ChannelCore& channel) noexcept;
  template <class F>
  bool visit(std::uint32_t index, F f) noexcept;
  bool ask_for_lease(std::uint32_t index) noexcept;
  ChannelCore& at(std::uint32_t index) noexcept;
  bool serve_alone() noexcept;
  bool serve_in_turn() noexcept;
  std::size_t serve_held(bool one) noexcept;
  std::size_t serve(ChannelCore& channel) noexcept;
  void let_go_of(ChannelCore& channel) noexcept;
  void worked(std::size_t events) noexcept;
  void sweep_ready() noexcept;
  void pass_all_but(const ChannelCore* kept) noexcept;
  void stop_searching() noexcept;
  bool reclaim_captures() noexcept;
  void sweep() noexcept;
  void give_up() noexcept;
  bool give_up_but_patient() noexcept;
  void recheck() noexcept;
  void park() noexcept;
  void sleep(std::uint32_t seen) noexcept;
  void rest(std::uint32_t seen) noexcept;
  void search() noexcept;

  Workers& all_;
  const unsigned index_;
  WaitStrategy wait_;
  std::vector<Held> held_;            // by index
  std::vector<std::uint32_t> given_;  // indices of channels that are no longer ours
  std::uint32_t last_served_ = 0;     // the index of the channel whose turn it was
  std::uint64_t woke_ = 0;            // as Lane::woke
  std::uint32_t rounds_ = 0;
  std::uint64_t events_before_ = 0;  // its last park
  std::int64_t realtime_wait_ns_ = 0;
  bool searching_ = false;
  bool was_parked_ = true;  // and the housekeeper may not know that it no longer is
};

class Workers final : public Counted, private ForkWitness {
 public:
  enum : std::uint32_t { kChannelsMax = ReadyChannels::kChannelsMax, kWorkersMax = 32 };
  enum : std::size_t { kAll = ~std::size_t{0} };

  explicit Workers(WorkersOptions options);
  ~Workers() override;

  /// Starts the threads, as many as the system gives. Returns how many run.
  unsigned start();
  /// Puts a channel under the workers' care. False: kChannelsMax are there.
  [[nodiscard]] bool add(ChannelCore& channel) noexcept;
  /// Nobody feeds or reads it any more: a worker will let go of it.
  void retire(ChannelCore& channel) noexcept;

  /// Threads of subscribers' own, between their start and their end. Throws std::bad_alloc.
  void add_own(OwnThread& own);
  void forget_own(OwnThread& own) noexcept;
  [[nodiscard]] const WorkersOptions& options() const noexcept { return options_; }

  /// What a publisher does that found its channel unleased.
  void signal(ChannelCore& channel, std::uint64_t& woke) noexcept;
  /// L3's other half: callbacks are over, somebody may wait for that.
  void consumed_something() noexcept {
    if (waiters_.load(std::memory_order_relaxed) != 0)
      tell_waiters();  // relaxed: L3 and asymmetric_fence_heavy() order it
  }
  [[nodiscard]] bool aborting() const noexcept {
    return aborting_.load(std::memory_order_relaxed);
  }  // relaxed: soon is enough
  using Born::forked;
  void watch_realtime() noexcept;

  // --- rests ---
  /// A worker that had few events sleeps for so long and keeps the leases of patient channels, so
  /// that what comes there meanwhile wakes nobody and is handed out together; 0, the default: it
  /// gives up all. flush(), stop() and events of other channels end a rest.
  void set_rest(std::int64_t ns) noexcept;
  void end_rests() noexcept;
  [[nodiscard]] std::uint32_t resting() const noexcept {
    return resting_.load(std::memory_order_seq_cst);  // L3
  }

  /// The bus's next number: whoever publishes after this has returned gets a larger one.
  [[nodiscard]] std::uint64_t take_ticket() noexcept {
    return tickets_.fetch_add(1, std::memory_order_acq_rel);  // T2: busy was said before
  }
  /// Every ticket to come is at least this. Who has a smaller one is seen busy or later.
  [[nodiscard]] std::uint64_t tickets_taken() const noexcept {
    return tickets_.load(std::memory_order_acquire);  // T2
  }

  // --- captures that a publishing thread was the last to use (retire_list.hpp) ---
  [[nodiscard]] RetireList& retire_list() noexcept { return retire_list_; }
  /// Something was retired there.
  void wake_reclaimer() noexcept;
  /// Destroys what lies there. Threads: any, holding no lock; calls the destructors of captures.
  void reclaim_captures() noexcept { retire_list_.reclaim_all(); }

  // --- without threads (manual.cpp) ---
  [[nodiscard]] bool manual() const noexcept { return options_.manual; }
  /// Manual: hands out up to `max` queued events in the calling thread, those included that
  /// callbacks publish meanwhile. Fixed order: round by round, by channel index, then by lane, at
  /// most a batch of each. Returns how many; 0 inside a callback. One caller at a time runs.
  std::size_t deliver(std::size_t max, std::int64_t limit_ns = -1) noexcept;
  /// Manual: what stamps say instead of the clock; nullptr with threads.
  [[nodiscard]] Atomic<std::int64_t>* manual_time() noexcept {
    return options_.manual ? &manual_time_ns_ : nullptr;
  }

  /// True: all that was accepted before the call has been delivered. False: time ran out, or the
  /// caller is inside a callback or is a worker.
  [[nodiscard]] bool flush(std::int64_t limit_ns) noexcept;
  struct Stopped {
    bool refused = false;  // called inside a callback
    std::uint64_t left = 0;
    std::vector<std::string> stuck;  // names of subscribers still running at the deadline
  };
  Stopped stop(bool abort, std::int64_t limit_ns) noexcept;
  [[nodiscard]] bool stopped() const noexcept {
    return quit_.load(std::memory_order_acquire) != 0;  // Q1
  }

  /// Frees the snapshots of `list` that no drainer reads. Under its channel's lock. Throws
  /// std::bad_alloc.
  void reclaim(SubscriberList& list) const;
  [[nodiscard]] std::vector<Ref<ChannelCore>> channels() const;
  /// For where nothing may be allocated: the next channel at or behind `index`, which moves behind
  /// it. Empty: there are no more.
  [[nodiscard]] Ref<ChannelCore> next_channel(std::uint32_t& index) const noexcept;
  [[nodiscard]] std::vector<WorkerCounts> counts() const;
  /// How many threads the system gave.
  [[nodiscard]] unsigned running() const noexcept {
    return static_cast<unsigned>(std::popcount(started_));
  }

  // --- the housekeeper ---
  [[nodiscard]] Housekeeper& house() noexcept { return house_; }
  /// Is a worker not parked, or a thread of a subscriber's own not asleep?
  [[nodiscard]] bool anybody_awake() const noexcept {
    return (idle_.load(std::memory_order_seq_cst) & kParkedMask) != started_ ||  // H
           own_awake_.load(std::memory_order_seq_cst) != 0;                      // H
  }
  void own_is_awake() noexcept;
  void own_is_asleep() noexcept {
    own_awake_.fetch_sub(1, std::memory_order_seq_cst);  // H
  }
  /// A thread that calls subscribers is watched from here to unwatch().
  void watch(Drainer& drainer);
  void unwatch(Drainer& drainer) noexcept;
  template <class F>
  void for_each_drainer(F f) const {
    const std::lock_guard lock(drainers_mutex_);
    for (Drainer* d : drainers_) f(*d);
  }
  /// `f(subscriber, channel)` for the subscriber of that id, if it is still there. Throws
  /// std::bad_alloc.
  template <class F>
  void with_subscriber(std::uint32_t watch_id, F f) const {
    for (const auto& channel : channels()) {
      bool found = false;
      channel->for_each_subscriber([&](Subscriber& s) {
        if (s.watch_id == watch_id && !std::exchange(found, true)) f(s, *channel);
      });
      if (found) return;
    }
  }
  /// Frees disposed channels that no worker looks at any more.
  void trim() noexcept;

 private:
  friend struct Worker;
  enum : std::uint64_t { kSearching = 1ull << 32, kParkedMask = 0xffffffffull };

  void in_child() noexcept override;
  void wake_one(std::uint64_t& woke) noexcept;
  void help(ChannelCore& channel) noexcept;
  std::size_t deliver_round(std::size_t max, const Deadline& deadline) noexcept;
  void tell_waiters() noexcept;
  void dispose(ChannelCore& channel) noexcept;
  void free_disposed() noexcept;
  void signal_realtime() noexcept;
  bool quiet(bool mailboxes, std::int64_t limit_ns) const noexcept;
  bool delivered(bool mailboxes, std::int64_t limit_ns) noexcept;
  bool runs_over(const Deadline& deadline) noexcept;
  bool drain_all(bool mailboxes, bool closing, std::int64_t limit_ns) noexcept;
  bool await_gone(std::int64_t limit_ns) noexcept;
  bool join(std::int64_t limit_ns, Stopped& result) noexcept;
  void join_own(std::int64_t limit_ns, Stopped& result) noexcept;
  std::uint64_t left_over(bool abort) const noexcept;
  void let_go(bool joined) noexcept;
  void keep_for_ever() noexcept;
  [[nodiscard]] std::string name_of(std::uint32_t watch_id) const;

  const WorkersOptions options_;
  unsigned count_ = 0;  // asked for: read by threads that run while others are not yet started
  std::uint32_t started_ = 0;  // a bit per worker that runs
  std::vector<std::unique_ptr<Worker>> workers_;

  alignas(kLineBytes) Atomic<std::uint64_t> idle_{0};  // searchers | parked, a bit per worker
  alignas(kLineBytes) Atomic<std::uint32_t> waiters_{0};
  Atomic<bool> aborting_{false};
  Atomic<std::uint32_t> quit_{0};
  Atomic<std::uint32_t> realtime_{0};
  Atomic<std::int64_t> rest_ns_{0};
  Atomic<std::uint32_t> resting_{0};
  RetireList retire_list_;
  alignas(kLineBytes) Atomic<std::uint32_t> done_key_{0};
  Atomic<std::uint32_t> gone_{0};
  Atomic<std::uint32_t> stopping_{0};
  alignas(kLineBytes) Atomic<std::uint64_t> tickets_{1};
  ReadyChannels ready_;
  alignas(kLineBytes) Atomic<std::int64_t> swept_ns_{0};
  std::array<Atomic<ChannelCore*>, kChannelsMax> table_{};

  Atomic<std::uint32_t> delivering_{0};  // manual: 1 while somebody delivers, callbacks included
  Atomic<std::int64_t> manual_time_ns_{1'000'000'000};

  mutable std::mutex mutex_;  // table_, free_, disposed_, own_
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
  std::vector<ChannelCore*> disposed_;
  std::vector<OwnThread*> own_;  // each holds itself while it is here
  Atomic<std::uint32_t> own_awake_{0};
  mutable std::mutex drainers_mutex_;
  std::vector<Drainer*> drainers_;
  bool closing_ = false;
  bool kept_ = false;  // under stopping_
  Workers* next_kept_ = nullptr;
  Housekeeper house_{*this};  // last: its thread uses the rest
};

}  // namespace ringmain::engine
