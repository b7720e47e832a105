#include "engine/publish/thread_lanes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <vector>

#include "engine/publish/missed.hpp"
#include "engine/system/cache_line.hpp"
#include "engine/system/thread_exit.hpp"

namespace ringmain::engine {
namespace {

struct Entry {
  Ref<ChannelCore> channel;
  Lane* lane = nullptr;
};

using Entries = std::vector<Entry>;

/// Open addressing by the channel's address; a power of two, at most half full.
class ThreadLanes {
 public:
  ThreadLanes() noexcept = default;
  ThreadLanes(const ThreadLanes&) = delete;
  ThreadLanes& operator=(const ThreadLanes&) = delete;
  ~ThreadLanes();

  Lane* find(const ChannelCore& channel) const noexcept {
    if (entries_.empty()) return nullptr;
    for (std::size_t i = home(channel);; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].channel.get() == &channel) return entries_[i].lane;
      if (!entries_[i].channel) return nullptr;
    }
  }
  bool add(ChannelCore& channel, Lane* lane, Entries& gone) noexcept;

 private:
  bool make_room(Entries& gone) noexcept;
  [[nodiscard]] std::size_t home(const ChannelCore& channel) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(&channel);
    return (address / sizeof(ChannelCore) * 0x9e3779b97f4a7c15ull >> 32) & (entries_.size() - 1);
  }
  void put(Entry entry) noexcept {
    std::size_t i = home(*entry.channel);
    while (entries_[i].channel) i = (i + 1) & (entries_.size() - 1);
    entries_[i] = std::move(entry);
    ++used_;
  }

  Entries entries_;
  std::size_t used_ = 0;
};

// All trivially destructible: a lookup after the table's end must not touch it.
thread_local ThreadLanes* lanes __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool ended __attribute__((tls_model("initial-exec"))) = false;
// Those that were asked for last, by the channel's address. One word each, and the lane itself says
// its channel: with two words a signal handler could come between them.
constexpr std::size_t kRecent = 16;
thread_local Lane* recent[kRecent] __attribute__((tls_model("initial-exec"))) = {};
// Set while the table is searched or changed, or a lane is taken with a lock: signal handlers must
// not come in then.
thread_local bool in_table __attribute__((tls_model("initial-exec"))) = false;

/// A lane that a look of this thread has found, innermost first. Captures that are destroyed before
/// the look returns may look for others, whose table may grow then.
class Found {
 public:
  explicit Found(const Lane* lane) noexcept : lane_(lane), outer_(innermost) { innermost = this; }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() { innermost = outer_; }
  [[nodiscard]] static bool is(const Lane* lane) noexcept {
    const Found* one = innermost;
    while (one != nullptr && one->lane_ != lane) one = one->outer_;
    return one != nullptr;
  }

 private:
  static constinit thread_local const Found* innermost __attribute__((tls_model("initial-exec")));
  const Lane* const lane_;
  const Found* const outer_;
};
constinit thread_local const Found* Found::innermost __attribute__((tls_model("initial-exec"))) =
    nullptr;

Lane*& recent_of(const ChannelCore& channel) noexcept {
  // Channels lie one behind the other, some multiple of this apart; where that is an odd one, as
  // with GCC's library, those of a bus meet least.
  constexpr std::uintptr_t kApart = 4 * std::uintptr_t{kLineBytes};
  return recent[reinterpret_cast<std::uintptr_t>(&channel) / kApart % kRecent];
}
void forget_recent() noexcept {
  std::fill(std::begin(recent), std::end(recent), nullptr);
}

// The main thread's table is not destroyed when the process exits, as no thread waits for its
// lanes.
void end_table(void* table) {
  ended = true;
  forget_recent();
  lanes = nullptr;
  delete static_cast<ThreadLanes*>(table);
}

constinit ThreadExit at_thread_exit{&end_table};

/// This thread's table; nullptr: out of memory, or the system has no key left.
ThreadLanes* table() noexcept {
  if (lanes != nullptr || !at_thread_exit.is_told()) return lanes;
  auto* made = new (std::nothrow) ThreadLanes;
  if (made == nullptr) return nullptr;
  if (!at_thread_exit.ask(made)) {
    delete made;
    return nullptr;
  }
  return lanes = made;
}

ThreadLanes::~ThreadLanes() {
  for (Entry& e : entries_) {
    if (e.channel) ChannelCore::give_lane(*e.lane);
  }
}

bool ThreadLanes::add(ChannelCore& channel, Lane* lane, Entries& gone) noexcept {
  if (2 * (used_ + 1) > entries_.size() && !make_room(gone)) return false;
  put({Ref<ChannelCore>(&channel), lane});
  return true;
}

/// Drops channels whose bus has stopped, and counts only the others for the new size, so that the
/// table of a thread that outlives many buses stays small. Destructors that run with these channels
/// may publish, so `gone` keeps them until the table can be searched again.
bool ThreadLanes::make_room(Entries& gone) noexcept {
  // Closing is final. On a busy lane, one in an inline phase, or one that a look has found, this
  // thread is publishing right now, further up its stack.
  const auto lives = [](const Entry& e) {
    return e.channel && (!e.channel->line.closing() || e.lane->inlined.phases != 0 ||
                         begun(*e.lane) || Found::is(e.lane));
  };
  const auto living =
      static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), lives));
  try {
    gone = Entries(std::bit_ceil(std::max<std::size_t>(16, 4 * (living + 1))));
    gone.swap(entries_);
    used_ = 0;
    forget_recent();
    for (Entry& e : gone) {
      if (!e.channel) continue;
      if (lives(e)) {
        put(std::move(e));
      } else {
        ChannelCore::give_lane(*e.lane);
      }
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

/// nullptr: out of memory, or no lane is left.
Lane* find_or_take(ChannelCore& channel, Entries& gone) noexcept {
  ThreadLanes* const mine = table();
  if (mine == nullptr) return nullptr;
  Lane* lane = mine->find(channel);
  if (lane != nullptr) return lane;
  LaneOptions options = thread_lane_options(channel);
  options.touched_later = true;  // somebody's call must not last as long as 200 faults
  lane = channel.take_lane(options, channel);
  if (lane != nullptr && !mine->add(channel, lane, gone)) {
    ChannelCore::give_lane(*lane);
    return nullptr;
  }
  return lane;
}

/// While it lives a signal handler that publishes without a lane of its own is refused.
class InTable {
 public:
  InTable() noexcept {
    in_table = true;
    order_for_handlers();
  }
  InTable(const InTable&) = delete;
  InTable& operator=(const InTable&) = delete;
  ~InTable() {
    order_for_handlers();
    in_table = false;
  }
};

/// Not inlined, to keep its stack frame out of the steady state's.
[[gnu::noinline]] Lane* look_up(ChannelCore& channel) noexcept {
  if (ended || in_table) return nullptr;
  Entries gone;
  Lane* lane = nullptr;
  {
    const InTable looking;
    lane = find_or_take(channel, gone);
    if (lane != nullptr) recent_of(channel) = lane;
  }
  const Found kept(lane);
  gone.clear();
  return lane;
}

}  // namespace

LaneOptions thread_lane_options(const ChannelCore& channel) noexcept {
  if (const LaneOptions* said = channel.thread_lanes()) return *said;
  LaneOptions options;
  options.kind = channel.options().lanes;
  return options;
}

PushResult push_once(ChannelCore& channel, BuildFn* build, void* from) noexcept {
  if (channel.inert()) {
    miss(channel.line.look());
    return Pushed::forked;
  }
  if (in_table) {
    channel.count_refused(Pushed::too_deep);
    channel.count_unrecorded();
    return Pushed::too_deep;
  }
  const Ref<ChannelCore> kept(&channel);  // an inline callback may end the bus
  // A thread without memory for its table is refused: its events would be on different lanes, where
  // one could overtake another.
  const bool alone = ended || !at_thread_exit.is_told();
  Lane* lane = nullptr;
  if (alone) {
    const InTable locked;
    lane = channel.take_lane({}, channel);
  }
  if (lane == nullptr) {
    // `closed` comes first: a publisher that gets it does not try again, and room would not help.
    const Pushed why = channel.line.closing() ? Pushed::closed : Pushed::no_memory;
    channel.count_refused(why);
    channel.count_unrecorded();
    return why;
  }
  const PushResult result = push_slowly(*lane, build, from, 0);
  ChannelCore::give_lane(*lane);
  return result;
}

Lane* thread_lane(ChannelCore& channel) noexcept {
  Lane* const last = recent_of(channel);
  if (last != nullptr && last->channel == &channel) [[likely]]
    return last;
  return look_up(channel);
}

}  // namespace ringmain::engine
