// The housekeeper: one thread per bus that watches the bus from outside.
//
// It finds which subscriber is slow, what was lost, and which memory is no longer read. It says so
// through a Reporter, which the bus provides, in its own thread and with no lock held. It waits for
// a second while the workers are parked, and for half the smallest budget while one is awake.
// Looking at every lane takes at most 2 % of a core. It ends in stop(). If the system gives no
// thread for it, the bus runs without a housekeeper.
#pragma once
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "../channel/channel_host.hpp"
#include "../channel/channel_table.hpp"
#include "../deliver/own_thread.hpp"
#include "../deliver/workers.hpp"
#include "watchdog.hpp"

namespace ringmain::engine {

/// A turn that is over its subscriber's budget.
struct SlowTurn {
  std::string subscriber, channel;
  std::int64_t running_ns = 0;  // so far, and at least
  std::int64_t budget_ns = 0;
};

/// A subscriber threw, or threw too often.
struct Thrown {
  std::string subscriber, channel, what;
  std::uint64_t count = 0;  // since the last time it was told, or, in quarantine, within a second
  bool quarantined = false;
};

/// Says what the housekeeper found. All calls come from its thread, with no lock of the engine
/// held.
class Reporter : public Counted {
 public:
  virtual void slow(const SlowTurn& turn) noexcept = 0;
  virtual void threw(const Thrown& thrown) noexcept = 0;
  /// `counts` were lost in `channel` since the last call that returned true, none of them before
  /// `first_ns` or after `last_ns`. False: it could not be published, so it is said again.
  virtual bool lost(const ChannelCore& channel, const Losses& counts, std::int64_t first_ns,
                    std::int64_t last_ns) noexcept = 0;
  /// The last call of each round. False: memory is short, so some of it is said later.
  virtual bool round(std::uint32_t notified, std::int64_t now_ns) noexcept = 0;
  /// Is it in a callback, and in whose ("" if in none)? Threads: any.
  [[nodiscard]] virtual bool is_calling() const noexcept = 0;
  [[nodiscard]] virtual std::string calling() const = 0;
  /// When it wants the next round at the latest. Threads: the housekeeper.
  [[nodiscard]] virtual std::int64_t due_ns() const noexcept = 0;
};

class Housekeeper {
 public:
  enum : std::int64_t {
    kLongWaitNs = 1'000'000'000,
    kShortWaitNsMin = 500'000,
    kLookNs = 100'000'000
  };

  /// What it looks at; all of it outlives it.
  struct Rooms {
    ChannelHost& host;
    ChannelTable& table;
    Drainers& drainers;
    Workers& workers;
    OwnThreads& own_threads;
  };
  explicit Housekeeper(Rooms rooms) noexcept : in_(rooms), inbox_(rooms.host.inbox()) {}
  ~Housekeeper();
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

  /// Before start().
  void set_reporter(Ref<Reporter> reporter) noexcept { reporter_ = std::move(reporter); }
  /// False: the system gives no thread.
  bool start(const WorkersOptions& options) noexcept;
  [[nodiscard]] bool running() const noexcept {
    return running_.load(std::memory_order_acquire) != 0;  // h.rounds
  }

  /// Waits until a round that began after the call is over, with nothing owed. False: time ran out,
  /// there is no housekeeper, or the caller is in a callback.
  bool await_round(std::int64_t limit_ns, std::uint32_t why = EventCount::kRound) noexcept;
  /// Ends the thread. False: it is still in a call of the reporter at the deadline, and is left
  /// alone.
  bool stop(std::int64_t limit_ns) noexcept;
  /// After stop() was false: the name of the subscriber whose callback holds it up.
  [[nodiscard]] std::string stuck_in() const {
    std::string name = reporter_ ? reporter_->calling() : std::string();
    return name.empty() ? "(the housekeeper)" : name;
  }
  /// After stop() was true: lets go of the reporter and what it holds.
  void let_go() noexcept { reporter_ = nullptr; }

  /// One round at the time `now_ns`, which was to come `asked_ns` after the last one. Called by its
  /// thread, or by tests that have none. False: the reporter has something left to say.
  bool round(std::uint32_t notified, std::int64_t now_ns, std::int64_t asked_ns) noexcept;
  [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_.get(); }

 private:
  void run() noexcept;
  [[nodiscard]] std::int64_t short_wait_ns() const noexcept;
  void watch(std::int64_t counted_ns);
  void look_at_channels(std::int64_t now_ns, bool last);
  void look_at(ChannelCore& channel, std::int64_t now_ns, bool last) noexcept;
  void tell_throws(std::int64_t now_ns);
  void find_smallest_budget() noexcept;
  template <class F>
  void for_each_channel(F f) const;
  void tell_rounds(std::uint32_t finished) noexcept;

  const Rooms in_;
  HouseInbox& inbox_;
  Ref<Reporter> reporter_;
  std::thread thread_;
  Count wakes_;
  Atomic<std::uint32_t> running_{0};
  Atomic<std::uint32_t> begun_{0};     // rounds
  Atomic<std::uint32_t> finished_{0};  // the last of them that left nothing owed

  // --- the thread's own ---
  LookClock clock_;
  std::int64_t next_look_ns_ = 0;
  std::int64_t last_look_ns_ = 0;  // losses that the next look finds new are younger
  bool losing_ = false;            // a burst is not over yet
};

}  // namespace ringmain::engine
