// The workers of one bus: which of them drains which channel, sleeps, or is woken?
//
// The holder of a channel's lease drains it. A publisher that finds a channel unleased signals it
// in the list of ready channels and wakes one worker. Several workers take one channel at a time
// from there, the one whose turn it is. A worker that is about to run callbacks passes its other
// leases on, so that a stuck callback holds up one channel only; after the callbacks it passes that
// one on too, if others wait. A single worker keeps all leases and serves the channels in turn.
// Before a worker parks it gives its leases up, says that it is parked, makes every thread pass a
// barrier (asymmetric_fence_heavy), and looks again. Protocol: tests/model/lane_protocol.md, with
// the edges s.signal, e.leased, e.passed, l.attended and l.waiting.
#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../channel/channel_host.hpp"
#include "../channel/channel_table.hpp"
#include "../system/workers_options.hpp"
#include "drainers.hpp"
#include "ready_channels.hpp"
#include "worker.hpp"

namespace ringmain::engine {

struct WorkerCounts {
  std::uint64_t parks = 0, wakes = 0, batches = 0, events = 0;
};

/// Threads: any, unless said otherwise. What workers share with channels lies in the ChannelHost.
class Workers {
 public:
  enum : std::uint32_t { kWorkersMax = 32 };

  /// All of them outlive it. Throws std::bad_alloc.
  Workers(const WorkersOptions& options, ChannelHost& host, ChannelTable& table,
          Drainers& drainers);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts the threads, as many as the system gives. Returns how many run.
  unsigned start();
  /// How many threads the system gave.
  [[nodiscard]] unsigned running() const noexcept {
    return static_cast<unsigned>(std::popcount(started_));
  }
  [[nodiscard]] std::vector<WorkerCounts> counts() const;
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& all() const noexcept {
    return workers_;
  }
  [[nodiscard]] ReadyChannels& ready() noexcept { return ready_; }

  /// Puts the channel on the list of ready channels, unless it is there, and wakes a worker. For a
  /// publisher that finds it unattended.
  void signal(const ChannelCore& channel, std::uint64_t& woke) noexcept;
  /// The same, also where it is signalled already.
  void signal_anew(const ChannelCore& channel) noexcept;
  /// Wakes one worker, unless one is awake and searches.
  void wake_one(std::uint64_t& woke) noexcept;
  /// There is a realtime lane, whose publisher wakes nobody: sleeping workers look now and then.
  void watch_realtime() noexcept;
  /// stop() has begun: wakes all workers.
  void wake_all() noexcept;

  // --- rests ---
  /// After few events a worker sleeps for so long and keeps the leases of patient channels: what
  /// comes there meanwhile wakes no worker and is handed out together. 0, the default: it gives up
  /// all leases. flush(), stop() and events of other channels end a rest.
  void set_rest(std::int64_t ns) noexcept;
  void end_rests() noexcept;
  [[nodiscard]] std::uint32_t resting() const noexcept {
    return resting_.load(std::memory_order_seq_cst);  // l.waiting
  }

  /// Is any worker not parked?
  [[nodiscard]] bool anybody_awake() const noexcept {
    return (idle_.load(std::memory_order_seq_cst) & kParkedMask) != started_;  // h.awake
  }
  /// Takes the channel out of the table. Threads: the worker that holds its lease, and keeps it.
  void dispose(ChannelCore& channel) noexcept;
  /// Frees disposed channels that no worker looks at.
  void trim() noexcept;

  /// After stop() has begun: waits until all workers have ended, and joins them. False: time ran
  /// out. The workers that run on are left alone, and `stuck` has the ids of the subscribers that
  /// they call.
  bool join(std::int64_t limit_ns, std::vector<std::uint32_t>& stuck) noexcept;

 private:
  friend struct Worker;
  enum : std::uint64_t { kSearching = 1ull << 32, kParkedMask = 0xffffffffull };
  static_assert(kParkedMask >> (kWorkersMax - 1) == 1 && kSearching == kParkedMask + 1,
                "a bit per worker, and the count of searchers right above them");

  [[nodiscard]] bool visited(const ChannelCore& channel) const noexcept;
  void signal_realtime() noexcept;
  bool await_gone(std::int64_t limit_ns) noexcept;

  const WorkersOptions& options_;
  ChannelHost& host_;
  ChannelTable& table_;
  Drainers& drainers_;
  unsigned count_ = 0;  // asked for: read by threads that run while others are not yet started
  std::uint32_t started_ = 0;  // a bit per worker that runs
  std::vector<std::unique_ptr<Worker>> workers_;

  alignas(kLineBytes) Atomic<std::uint64_t> idle_{0};  // searchers | parked, a bit per worker
  alignas(kLineBytes) Atomic<std::uint32_t> realtime_{0};
  Atomic<std::int64_t> rest_ns_{0};
  Atomic<std::uint32_t> resting_{0};
  alignas(kLineBytes) Atomic<std::uint32_t> gone_{0};
  ReadyChannels ready_;
  alignas(kLineBytes) Atomic<std::int64_t> swept_ns_{0};
};

}  // namespace ringmain::engine
