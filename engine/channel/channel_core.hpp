// A channel without its type: its publishers' line, its lanes, its subscribers, its owner's counts.
//
// Three parties use it: publishers (line and their own lane), the holder of its lease (drain), and
// threads that subscribe, take lanes or ask for figures (under its lock, which is never held during
// a callback, a destructor of captures, or a wait: a lane may be taken inside anybody's call).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "../publish/lane.hpp"
#include "../publish/pushed.hpp"
#include "../subscribe/shown.hpp"
#include "../subscribe/snapshot.hpp"
#include "../system/chunks.hpp"
#include "../system/clock.hpp"
#include "../system/ref.hpp"
#include "../watch/histogram.hpp"
#include "channel_host.hpp"
#include "lane_order.hpp"
#include "reader.hpp"

namespace ringmain::engine {

struct ChannelCoreOptions {
  std::string name;
  const void* schema = nullptr;  // the bus's; the engine only carries them
  void* owner = nullptr;
  std::uint32_t payload_bytes = 0;
  std::uint32_t lanes_max = 1024;
  std::uint32_t latency_every = 0;
  LaneKind lanes = LaneKind::segments;  // for threads that ask for none
  bool mailbox = false;     // fed by other channels: each lane carries another one's events
  bool pulled = false;      // drained by one thread that is no worker
  bool own_thread = false;  // pulled, by a thread of the bus: flush() and stop() wait for it
  bool queueless = false;   // pulled, by nobody: all subscribers are inline, lanes have no queue
  bool tells_no_losses = false;  // the bus's own: a lost notice must not cause another
  bool parallel = false;         // several workers hand out runs of it at once
  bool merged = false;           // in the order of tickets over all lanes
  std::int64_t order_gap_ns_max = 100'000'000;  // merged: how long a busy publisher is waited for
  std::vector<Ref<ChannelCore>> sources;        // merged mailboxes: the channels that feed it
  /// Is it one of those that are found by name?
  [[nodiscard]] bool named() const noexcept { return !mailbox && !queueless; }
  [[nodiscard]] bool for_its_user() const noexcept { return pulled && !own_thread && !queueless; }
};

/// Events that were offered and will never be heard, by reason. What a closed channel refuses is no
/// loss.
struct Losses {
  std::uint64_t full = 0, no_memory = 0, too_deep = 0, evicted = 0;
  friend bool operator==(const Losses&, const Losses&) = default;
  friend Losses operator-(const Losses& a, const Losses& b) noexcept {
    return {a.full - b.full, a.no_memory - b.no_memory, a.too_deep - b.too_deep,
            a.evicted - b.evicted};
  }
};

/// How many subscribers a channel has, and what they want.
struct Listening {
  std::uint32_t queued = 0;    // subscribers on workers, and feeders of mailboxes
  std::uint32_t inlined = 0;   // called in the publishing thread
  std::uint32_t recorded = 0;  // recordings
  bool stamps = false;         // one of them wants publishing times
  friend bool operator==(const Listening&, const Listening&) = default;
};

class ChannelCore final : public Counted, public ShownCalls {
  enum : std::uint32_t { kReasons = 16 };

 public:
  enum : std::uint32_t { kLanesMax = ChunkPlace::kPlaces };
  ChannelCore(Ref<ChannelHost> host, ChannelCoreOptions options);
  ~ChannelCore() override;

  ChannelLine line;  // first: publishers read it at every event

  [[nodiscard]] const ChannelCoreOptions& options() const noexcept { return options_; }
  [[nodiscard]] ChannelHost& host() const noexcept { return *host_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  void set_index(std::uint32_t index) noexcept { index_ = index; }
  /// This is a forked child and its workers are the parent's: calls take no lock and do nothing.
  [[nodiscard]] bool inert() const noexcept;

  // --- lanes ---
  /// A lane for one publishing thread; nullptr: lanes_max are live, or out of memory. `source` is
  /// the channel whose events it carries (this one, or one that feeds this mailbox). Takes the
  /// lock.
  /// `fed_by`: for a merged mailbox, the lane of the channel that feeds this one.
  [[nodiscard]] Lane* take_lane(const LaneOptions& wanted, const ChannelCore& source,
                                const Lane* fed_by = nullptr) noexcept;
  /// Says once what lanes threads get that publish without a publisher of their own. Returns what
  /// holds from then on, which is what was said first; nullptr: out of memory. Progress: lock-free.
  [[nodiscard]] const LaneOptions* set_thread_lanes(const LaneOptions& options) noexcept {
    auto* mine = new (std::nothrow) LaneOptions(options);
    if (mine == nullptr) return nullptr;
    const LaneOptions* first = nullptr;
    // e.lanes_said: a thread that finds them finds them whole, and so does one that is too late.
    if (thread_lanes_.compare_exchange_strong(first, mine, std::memory_order_acq_rel)) return mine;
    delete mine;
    return first;
  }
  /// nullptr: nobody has said. Progress: wait-free.
  [[nodiscard]] const LaneOptions* thread_lanes() const noexcept {
    return thread_lanes_.load(std::memory_order_acquire);  // e.lanes_said
  }
  /// The housekeeper: touches what LaneOptions::touched_later left.
  void touch_lanes() noexcept;
  /// Gives a lane back. What is in flight is still delivered. Progress: lock-free.
  static void give_lane(Lane& lane) noexcept;
  [[nodiscard]] std::uint32_t lane_count() const noexcept {
    return lane_count_.load(std::memory_order_acquire);  // e.listed
  }
  [[nodiscard]] Lane& lane(std::uint32_t i) const noexcept {
    const ChunkPlace at = ChunkPlace::of(i);
    return *chunks_[at.chunk][at.place];
  }
  /// Does any lane have a publisher? If not, all that was published on them is seen from here on.
  [[nodiscard]] bool fed() const noexcept;
  /// Counts a publish that was refused before it had a lane.
  void count_refused(Pushed why) noexcept;
  /// How many there were, by Pushed.
  [[nodiscard]] std::span<const Atomic<std::uint64_t>, kReasons> refused_early() const noexcept {
    return refused_;
  }

  // --- subscribers ---
  /// False: out of memory, or inert. Takes over one reference to `subscriber`, which is an inline
  /// one if it has `judge`.
  [[nodiscard]] bool attach(Subscriber* subscriber) noexcept;
  /// Takes it off the list, if it is there; its gate is left to the caller.
  void unlist(Subscriber* subscriber) noexcept;
  [[nodiscard]] std::size_t subscribers() const noexcept;
  /// Is an inline subscriber called, by any lane's publisher? Does a drainer show a call of
  /// another?
  [[nodiscard]] bool calling(const Subscriber& subscriber) const noexcept override;
  void keep() const noexcept override { hold(); }
  void let_go() const noexcept override { release(); }
  /// No event is accepted from here on.
  void close_line() noexcept;
  /// In the only thread of a forked child: ends publishing and callbacks here.
  void become_forked() noexcept;
  /// For a mailbox that its user drains, which always counts as listened to.
  void begin_listening() noexcept;

  // --- tickets ---
  /// After it returns every publish takes a ticket, until unwant_tickets() was called as often.
  /// False: out of memory, or inert. Takes the lock.
  [[nodiscard]] bool want_tickets() noexcept;
  void unwant_tickets() noexcept;
  /// Smaller tickets are left from an earlier wish.
  [[nodiscard]] std::uint64_t tickets_since() const noexcept {
    return tickets_since_.load(
        std::memory_order_relaxed);  // relaxed: t.wanted of the ticket itself
  }
  /// nullptr: lane by lane. Set before the first publish.
  [[nodiscard]] LaneOrder* lane_order() const noexcept { return lane_order_.get(); }
  void set_lane_order(std::unique_ptr<LaneOrder> order) noexcept { lane_order_ = std::move(order); }

  // --- recordings ---
  /// Records what is published from here on, in the recording with that place, or no longer
  /// (nullptr): then the caller waits until nobody is inside (flight/recording.hpp). Takes the
  /// lock.
  void set_recorded(std::size_t place, const flight::Recorded* as) noexcept;
  /// Inside only. nullptr: not in that one. Progress: wait-free.
  [[nodiscard]] const flight::Recorded* recorded(std::size_t place) const noexcept {
    return recorded_[place].load(std::memory_order_acquire);  // z.recorded
  }
  /// There is, or was, one in which events open operations. Relaxed: as if before a recording came.
  [[nodiscard]] bool opens_operations() const noexcept {
    return opens_operations_.load(std::memory_order_relaxed);
  }
  /// An event was refused before it had a lane, so it is not recorded.
  void count_unrecorded() const noexcept;

  // --- the owner ---
  /// Is anything left? Read from the lanes' counters, never by a dequeue.
  [[nodiscard]] bool anything_left() const noexcept;
  [[nodiscard]] bool has_realtime() const noexcept {
    return realtime_lanes_.load(std::memory_order_relaxed) != 0;
  }

  // --- the housekeeper ---
  struct Looked {
    Losses lost, told;
    std::int64_t first_ns = 0, last_ns = 0;  // around what was lost and not told
    Highest depth_max;
  };
  Looked looked;  // for the housekeeper's thread only, except depth_max
  /// The smallest budget of its subscribers; 0 if none has one.
  [[nodiscard]] std::int64_t smallest_budget_ns() const noexcept;
  /// Which kinds of subscribers listen. Changes that ended before this call are included.
  [[nodiscard]] Listening listening() const noexcept;
  /// Frees old lists of subscribers that no thread reads.
  void trim() noexcept;
  /// `f(subscriber)` for those listed and those that may still be called. Under the lock.
  template <class F>
  void for_each_subscriber(F f) const {
    const std::lock_guard lock(mutex_);
    list_.for_each(f);
    inline_list_.for_each(f);
  }

  [[nodiscard]] const Histogram* latency() const noexcept { return latency_.get(); }

  /// Written by the lease's holder: which lane it looked at last.
  alignas(kLineBytes) std::uint32_t last_lane = 0;
  /// Set by the lease's holder.
  Atomic<bool> busy{false};
  /// All its subscribers are patient: a worker may keep its lease while it rests.
  Atomic<bool> patient{false};
  /// For a sweep: no event came since the last sweep, and none is there.
  [[nodiscard]] bool is_quiet() noexcept {
    // Relaxed: a channel that seems quiet is looked at again after its lease is given up.
    if (!busy.load(std::memory_order_relaxed)) return !anything_left();
    busy.store(false, std::memory_order_relaxed);  // relaxed: as above
    return false;
  }
  /// Events handed to all subscribers, raised before `consumed`: the other side of I2.
  CallCount dispatched;
  [[nodiscard]] const Atomic<const Snapshot*>& snapshot() const noexcept { return list_.current(); }
  [[nodiscard]] const Atomic<const Snapshot*>& inline_snapshot() const noexcept {
    return inline_list_.current();
  }
  [[nodiscard]] Histogram* owner_latency() noexcept { return latency_.get(); }
  /// The time for a stamp: the clock's, or the one set by hand.
  [[nodiscard]] std::int64_t stamp_ns() const noexcept {
    // Relaxed: a time, from which nothing follows.
    return manual_time_ == nullptr ? now_ns() : manual_time_->load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool manual() const noexcept { return manual_time_ != nullptr; }

  /// The next in the bus's list of channels that could not be entered. They are kept, because lanes
  /// of mailboxes name them as their source.
  Ref<ChannelCore> next_abandoned;
  /// Room for the bus's Channel<E>; trivially destructible, built once.
  alignas(kLineBytes) std::byte face[64] = {};
  bool face_built = false;
  /// Pulled only: the thread that drains this channel waits here.
  Pull pull;
  /// 1: no feeder and no reader is left, and the worker that holds the lease disposes of it.
  Atomic<std::uint32_t> retired{0};

 private:
  [[nodiscard]] Lane* make_lane(const LaneOptions& options, const ChannelCore& source,
                                const Lane* fed_by) noexcept;
  bool give_tickets(Lane& lane) noexcept;
  bool give_slots(Lane& lane, unsigned slot_class) noexcept;
  bool give_queue(Lane& lane, unsigned slot_class) noexcept;
  void free_lane(Lane* lane) noexcept;
  void start_lane(Lane& lane) noexcept;
  void name_source(Lane& lane, std::size_t place, const flight::Recorded& as,
                   bool of_this_thread) noexcept;
  void name_sources(Lane& lane) noexcept;
  [[nodiscard]] std::uint32_t recordings() const noexcept;
  void update_state() noexcept;
  [[nodiscard]] std::vector<const Reading*> inline_readings() const;

  const Ref<ChannelHost> host_;
  const ChannelCoreOptions options_;
  const Atomic<std::int64_t>* const manual_time_;
  std::uint32_t index_ = 0;

  std::unique_ptr<Histogram> latency_;
  std::unique_ptr<LaneOrder> lane_order_;
  std::uint32_t ticket_wishes_ = 0;
  Atomic<std::uint64_t> tickets_since_{0};

  alignas(kLineBytes) Atomic<std::uint32_t> lane_count_{0};
  Atomic<std::uint32_t> realtime_lanes_{0};
  std::array<std::unique_ptr<Lane*[]>, ChunkPlace::kChunks> chunks_;  // never moved
  std::array<void*, slot_sizes().size()> queues_{};
  Atomic<std::uint64_t> refused_[kReasons] = {};      // by Pushed, of publishers without a lane
  Atomic<const LaneOptions*> thread_lanes_{nullptr};  // ours; set once

  mutable std::mutex mutex_;
  SubscriberList list_;         // subscribers that hear what workers drain
  SubscriberList inline_list_;  // subscribers that see an event before it is queued
  bool had_inline_ = false;     // there was one on that list
  std::array<Atomic<const flight::Recorded*>, flight::kRecordingsMax> recorded_{};  // by place
  Atomic<bool> opens_operations_{false};
};

}  // namespace ringmain::engine
