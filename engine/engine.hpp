// The engine of one bus: its channels' host, its workers, its housekeeper, and their end.
//
// It owns the parts that the folders below it define, and hands each what it needs. A bus uses the
// engine; channels know it as their ChannelHost only. What each part does is said in its own file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "channel/channel_host.hpp"
#include "channel/channel_table.hpp"
#include "deliver/flush.hpp"
#include "deliver/manual.hpp"
#include "deliver/own_thread.hpp"
#include "deliver/workers.hpp"
#include "system/fork.hpp"
#include "watch/housekeeper.hpp"

namespace ringmain::engine {

/// Threads: any.
class Engine final : public ChannelHost, private ForkWitness {
 public:
  /// Throws std::bad_alloc.
  explicit Engine(WorkersOptions options);
  ~Engine() override;

  /// Starts the threads, as many as the system gives. Returns how many workers run. Threads: one,
  /// once.
  unsigned start();
  [[nodiscard]] const WorkersOptions& options() const noexcept { return options_; }

  // --- for channels ---
  bool add(ChannelCore& channel) noexcept override;
  void retire(ChannelCore& channel) noexcept override;
  void signal(ChannelCore& channel, std::uint64_t& woke) noexcept override;
  void wake_reclaimer() noexcept override;
  void watch_realtime() noexcept override;
  void end_rests() noexcept override;
  void reclaim(SubscriberList& list) const override;
  bool calling(const Subscriber& subscriber) const noexcept override;
  std::size_t deliver(std::size_t max, std::int64_t limit_ns = -1) noexcept override;
  OwnThreads& own_threads() noexcept override { return own_threads_; }

  /// As Workers::set_rest().
  void set_rest(std::int64_t ns) noexcept { workers_.set_rest(ns); }
  [[nodiscard]] std::uint32_t resting() const noexcept { return workers_.resting(); }

  // --- the end ---
  /// True: all that was accepted before the call has been delivered. False: time ran out, or the
  /// caller is inside a callback or is a worker. Progress: blocking.
  [[nodiscard]] bool flush(std::int64_t limit_ns) noexcept;
  struct Stopped {
    bool refused = false;  // called inside a callback
    std::uint64_t left = 0;
    std::vector<std::string> stuck;  // names of subscribers still running at the deadline
  };
  /// Accepts nothing more, delivers what was accepted (`abort`: discards it), ends all threads.
  /// Progress: blocking, until `limit_ns`.
  Stopped stop(bool abort, std::int64_t limit_ns) noexcept;

  // --- figures ---
  [[nodiscard]] std::vector<Ref<ChannelCore>> channels() const { return table_.channels(); }
  /// As ChannelTable::next_channel().
  [[nodiscard]] Ref<ChannelCore> next_channel(std::uint32_t& index) const noexcept {
    return table_.next_channel(index);
  }
  [[nodiscard]] std::vector<WorkerCounts> counts() const { return workers_.counts(); }
  /// How many workers the system gave.
  [[nodiscard]] unsigned running() const noexcept { return workers_.running(); }
  [[nodiscard]] Drainers& drainers() noexcept { return drainers_; }
  [[nodiscard]] Housekeeper& house() noexcept { return house_; }
  /// Is a worker not parked, or a thread of a subscriber's own not asleep?
  [[nodiscard]] bool anybody_awake() const noexcept {
    return workers_.anybody_awake() || own_threads_.anybody_awake();
  }

 private:
  void in_child() noexcept override;
  void join_all(bool drained, const Deadline& deadline, bool abort, Stopped& result) noexcept;
  void name_stuck(const std::vector<std::uint32_t>& ids, Stopped& result) const noexcept;
  [[nodiscard]] std::string name_of(std::uint32_t watch_id) const;
  [[nodiscard]] std::uint64_t left_over(bool abort) const noexcept;
  void let_go(bool joined) noexcept;
  void keep_for_ever() noexcept;

  const WorkersOptions options_;
  ChannelTable table_;
  Drainers drainers_;
  Workers workers_;
  OwnThreads own_threads_;
  ManualDelivery manual_delivery_;
  Flush flush_;
  Atomic<std::uint32_t> stopping_{0};
  bool kept_ = false;        // written while stopping_ is held
  bool hears_forks_ = true;  // as kept_
  Engine* next_kept_ = nullptr;
  Housekeeper house_;  // last: its thread uses the rest
};

}  // namespace ringmain::engine
