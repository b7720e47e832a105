#include "engine/deliver/worker.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/channel/channel_figures.hpp"
#include "engine/deliver/workers.hpp"

namespace ringmain::engine {
namespace {

enum : std::size_t { kQuantum = 256 };
enum : std::uint32_t { kRoundsPerSweep = 256 };
enum : std::int64_t {
  kSweepNs = 1'000'000,
  kFirstRealtimeNs = 100'000,
  kFirstRestNs = 20'000'000,
  kLongestRestNs = 80'000'000
};

/// Asks for the lease of a channel that is visited. The signal may be left from an earlier channel
/// of that index. That does no harm, but a pulled channel belongs to its reader alone.
bool lease(ChannelCore& channel) noexcept {
  return !channel.options().pulled &&
         channel.line.leased.exchange(1, std::memory_order_seq_cst) == 0;  // e.leased, s.signal
}

/// The index of the lowest bit.
std::uint32_t index_of(std::uint32_t word, std::uint64_t bits) noexcept {
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
}

}  // namespace

Worker::Worker(Workers& all, unsigned index, const WaitOptions& wait)
    : all_(all), index_(index), wait_(wait) {
  park_number.store(index, std::memory_order_relaxed);  // relaxed: nobody else has it yet
  glances.others = &all_.ready_;
  held_.reserve(ChannelTable::kChannelsMax);  // a worker could not go on without memory later
  given_.reserve(ChannelTable::kChannelsMax);
}

void Worker::run() noexcept {
  for (;;) {
    const bool served = all_.count_ == 1 ? serve_alone() : serve_in_turn();
    // A callback forked and came back: nothing of what is here is this process's.
    if (all_.host_.aborting() && all_.host_.forked()) return;
    if (served) continue;
    if (all_.host_.stopped()) break;
    if (reclaim_captures()) continue;
    if (wait_.look_again(glances.take_made())) {
      search();
    } else {
      park();
    }
  }
  give_up();
  stop_searching();
  reading.store(nullptr, std::memory_order_release);   // n.unread
  all_.gone_.fetch_add(1, std::memory_order_acq_rel);  // q.over
  futex_wake(all_.gone_, 1);
}

// --- leases ---

/// Takes all that wait: this worker is alone.
void Worker::adopt() noexcept {
  for (std::uint32_t word = 0, words = all_.ready_.words(); word < words; ++word) {
    for (std::uint64_t bits = all_.ready_.take_all_passed(word); bits != 0; bits &= bits - 1)
      keep(at(index_of(word, bits)));
    for (std::uint64_t bits = all_.ready_.take_all_signals(word); bits != 0; bits &= bits - 1) {
      if (ask_for_lease(index_of(word, bits))) keep(at(index_of(word, bits)));
    }
  }
}

void Worker::keep(ChannelCore& channel) noexcept {
  const auto after =
      std::upper_bound(held_.begin(), held_.end(), channel.index(),
                       [](std::uint32_t index, const Held& h) { return index < h.index; });
  held_.insert(after, {&channel, channel.index()});
}

/// Returns f(channel) of the channel at that place, which is not freed meanwhile. False: there is
/// none.
template <class F>
bool Worker::visit(std::uint32_t index, F f) noexcept {
  Atomic<ChannelCore*>& entry = all_.table_.entry(index);
  ChannelCore* channel = entry.load(std::memory_order_acquire);  // e.listed
  visiting.store(channel, std::memory_order_release);            // n.unread
  asymmetric_fence_light_or_full();                              // l.visiting
  const bool there =
      channel != nullptr && entry.load(std::memory_order_acquire) == channel;  // e.listed
  const bool result = there && f(*channel);
  visiting.store(nullptr, std::memory_order_release);  // n.unread
  return result;
}

/// False: another worker has it, or no worker may.
bool Worker::ask_for_lease(std::uint32_t index) noexcept {
  return visit(index, &lease);
}

/// The channel at that index, whose lease this worker has.
ChannelCore& Worker::at(std::uint32_t index) noexcept {
  return *all_.table_.entry(index).load(std::memory_order_acquire);  // e.listed
}

void Worker::pass_all_but(const ChannelCore* kept) noexcept {
  for (const Held& h : held_) {
    if (h.channel != kept) all_.ready_.pass(h.index);
  }
  std::erase_if(held_, [kept](const Held& h) { return h.channel != kept; });
}

// --- serving ---

void Worker::before_callbacks(ChannelCore& channel) noexcept {
  if (std::exchange(was_parked_, false)) all_.host_.inbox().event_count().notify_busy();
  channel.busy.store(true, std::memory_order_relaxed);  // relaxed: a sweep sees it or the next
  if (all_.count_ == 1) return;                         // there is no other worker
  stop_searching();
  // A callback may never return: others must be able to serve the rest, and this one too if it
  // delivers in parallel.
  pass_all_but(channel.options().parallel ? nullptr : &channel);
  // The worker that passed on what waits there may be busy by now.
  if (all_.ready_.anything()) all_.wake_one(woke_);
}

void Worker::stop_searching() noexcept {
  if (!searching_) return;
  all_.idle_.fetch_sub(Workers::kSearching, std::memory_order_seq_cst);  // s.signal
  searching_ = false;
}

/// Destructors of captures are user code: no lease is held while they run. False: there were none.
bool Worker::reclaim_captures() noexcept {
  if (!all_.host_.retire_list().occupied()) return false;
  stop_searching();
  pass_all_but(nullptr);
  if (all_.count_ > 1 && all_.ready_.anything()) all_.wake_one(woke_);
  all_.host_.retire_list().reclaim_all();
  return true;
}

/// Serves a channel that is held, up to a quantum. Where there was nothing it stays held, unless it
/// was retired and is disposed of.
std::size_t Worker::serve(ChannelCore& channel) noexcept {
  last_served_ = channel.index();
  // Not before it is known to search: a publisher of another channel would wake a worker instead.
  const bool may_glance = held_.size() == 1 && (searching_ || all_.count_ == 1);
  glances.most = may_glance ? std::size_t{Glances::kMost} : 0;
  const std::size_t taken = drain(*this, channel, kQuantum);
  if (taken != 0) {
    batches.add(1);
    events.add(taken);
  } else if (channel.retired.load(std::memory_order_acquire) != 0 &&  // q.over
             !channel.anything_left()) {
    std::erase_if(held_, [&](const Held& h) { return h.channel == &channel; });
    all_.dispose(channel);
  }
  return taken;
}

/// Serves the channels that are held, by index, from the one after the last. `one`: ends at the
/// first that had events.
std::size_t Worker::serve_held(bool one) noexcept {
  if (held_.size() == 1) return serve(*held_.front().channel);
  std::size_t served = 0;
  auto place = static_cast<std::size_t>(
      std::upper_bound(held_.begin(), held_.end(), last_served_,
                       [](std::uint32_t index, const Held& h) { return index < h.index; }) -
      held_.begin());
  for (std::size_t left = held_.size(); left > 0 && !held_.empty(); --left) {
    if (place >= held_.size()) place = 0;
    const std::size_t before = held_.size();
    served += serve(*held_[place].channel);
    if (one && served != 0) break;
    if (held_.size() == before) ++place;
  }
  return served;
}

bool Worker::serve_alone() noexcept {
  adopt();
  const std::size_t served = serve_held(false);
  if (served != 0) worked(served);
  return served != 0;
}

/// Serves the one channel whose turn it is, before those that are held, which were empty. So no
/// channel waits for more turns than the shared order says, and a worker that the system delays
/// holds up one channel only.
bool Worker::serve_in_turn() noexcept {
  const ReadyChannels::Turn next = all_.ready_.take();
  std::size_t served = 0;
  if (next.kind != ReadyChannels::Turn::none) {
    if (next.kind == ReadyChannels::Turn::passed || ask_for_lease(next.index)) {
      ChannelCore& channel = at(next.index);
      keep(channel);
      served = serve(channel);
    }
  } else {
    served = serve_held(true);
  }
  if (served != 0) {
    if (all_.ready_.anything()) pass_all_but(nullptr);  // it had its turn
    worked(served);
  }
  return served != 0 || next.kind != ReadyChannels::Turn::none;
}

void Worker::worked(std::size_t events_served) noexcept {
  wait_.worked(events_served, take_least_room(), glances.take_made());
  realtime_wait_ns_ = kFirstRealtimeNs;
  if (++rounds_ % kRoundsPerSweep == 0) sweep();
}

/// Gives up the leases of channels that had nothing for a while, so that they cost no more looks.
void Worker::sweep() noexcept {
  const std::int64_t now = now_ns();
  std::int64_t last = all_.swept_ns_.load(std::memory_order_relaxed);  // relaxed: once is enough
  if (now - last < kSweepNs ||
      !all_.swept_ns_.compare_exchange_strong(last, now, std::memory_order_relaxed)) {  // relaxed
    return;
  }
  if (all_.realtime_.load(std::memory_order_relaxed) != 0)
    all_.signal_realtime();  // relaxed: soon is enough
  if (reclaim_captures()) return;
  given_.clear();
  std::erase_if(held_, [this](const Held& h) {
    if (!h.channel->is_quiet()) return false;
    let_go_of(*h.channel);
    return true;
  });
  if (all_.count_ > 1) sweep_ready();
  if (given_.empty()) return;
  recheck();
  if (all_.count_ > 1) pass_all_but(nullptr);  // they were taken out of their turn
}

/// Takes them one by one, and only those that look quiet: a worker that the system stops holds up
/// every channel that it has.
void Worker::sweep_ready() noexcept {
  for (std::uint32_t word = 0, words = all_.ready_.words(); word < words; ++word) {
    for (std::uint64_t bits = all_.ready_.look_at_passed(word); bits != 0; bits &= bits - 1) {
      const std::uint32_t index = index_of(word, bits);
      if (!visit(index, [](ChannelCore& c) { return c.is_quiet(); })) continue;
      if (!all_.ready_.take_passed(index)) continue;
      ChannelCore& channel = at(index);
      if (channel.anything_left()) {
        all_.ready_.pass(index);
      } else {
        let_go_of(channel);
      }
    }
  }
}

void Worker::let_go_of(ChannelCore& channel) noexcept {
  given_.push_back(channel.index());
  channel.line.leased.store(0, std::memory_order_release);  // e.leased
}

void Worker::give_up() noexcept {
  given_.clear();
  for (const Held& h : held_) let_go_of(*h.channel);
  held_.clear();
}

/// After few events it keeps the leases of patient channels, for a rest. False: it kept none.
bool Worker::give_up_but_patient() noexcept {
  const std::uint64_t served = events.get() - std::exchange(events_before_, events.get());
  // Relaxed: a limit of time, and whether lanes need looks sooner; both may be read late.
  const bool rests = served != 0 && served < kQuantum &&
                     all_.rest_ns_.load(std::memory_order_relaxed) > 0 &&
                     all_.realtime_.load(std::memory_order_relaxed) == 0;
  if (!rests) {
    give_up();
    return false;
  }
  given_.clear();
  std::erase_if(held_, [this](const Held& h) {
    if (h.channel->patient.load(std::memory_order_relaxed)) return false;  // relaxed: as set
    let_go_of(*h.channel);
    return true;
  });
  return !held_.empty();
}

/// The other half of l.attended: finds events of publishers that did not see the lease given up. It
/// also finds a channel that was retired meanwhile, whose signal another worker may have taken
/// while the channel was still leased. By now that channel may be disposed of, and a new one may
/// have its index and its address, so each is looked at anew.
void Worker::recheck() noexcept {
  asymmetric_fence_heavy();  // l.attended
  for (const std::uint32_t index : given_) {
    if (visit(index, [](ChannelCore& channel) {
          return (channel.anything_left() ||
                  channel.retired.load(std::memory_order_acquire) != 0) &&  // q.over
                 lease(channel);
        }))
      keep(at(index));
  }
}

// --- waiting ---

void Worker::search() noexcept {
  if (searching_ || all_.count_ == 1) return;
  all_.idle_.fetch_add(Workers::kSearching, std::memory_order_seq_cst);  // s.signal
  searching_ = true;
}

void Worker::park() noexcept {
  const bool rests = give_up_but_patient();
  const std::size_t kept = held_.size();
  reading.store(nullptr, std::memory_order_release);  // n.unread
  const std::uint32_t seen =
      key.load(std::memory_order_relaxed);  // relaxed: before the number of this park
  // Relaxed: this thread's own. Set after the key was read, so a thread that sees this number moves
  // the key away from what was read.
  park_number.store(park_number.load(std::memory_order_relaxed) + Workers::kWorkersMax,
                    std::memory_order_release);  // s.signal
  const std::uint64_t me = 1ull << index_;
  all_.idle_.fetch_add(me - std::uint64_t{searching_} * Workers::kSearching,
                       std::memory_order_seq_cst);  // s.signal
  searching_ = false;
  if (rests) all_.resting_.fetch_add(1, std::memory_order_seq_cst);  // l.waiting: then the waiters
  recheck();
  if (held_.size() == kept && !all_.ready_.anything() && !all_.host_.retire_list().occupied() &&
      !all_.host_.stopped()) {
    rests ? rest(seen) : sleep(seen);
  }
  if (rests) all_.resting_.fetch_sub(1, std::memory_order_seq_cst);  // l.waiting
  all_.idle_.fetch_add(std::uint64_t{all_.count_ > 1} * Workers::kSearching - me,
                       std::memory_order_seq_cst);  // s.signal
  searching_ = all_.count_ > 1;
  was_parked_ = true;
}

void Worker::sleep(std::uint32_t seen) noexcept {
  std::int64_t limit = -1;
  if (all_.realtime_.load(std::memory_order_relaxed) != 0) {  // relaxed: a new one wakes us
    const std::int64_t longest = all_.options_.wait.realtime_ns_max;
    limit = realtime_wait_ns_ =
        std::min(longest, std::max<std::int64_t>(kFirstRealtimeNs, times_ns(2, realtime_wait_ns_)));
  }
  parks.add(1);
  if (futex_wait(key, seen, limit)) {
    wakes.add(1);
  } else {
    all_.signal_realtime();
  }
}

/// A flushing thread finds this worker resting, or the worker sees that a thread waits. It rests in
/// slices, so that lanes do not fill up where more than a few events come. A rest ends by itself: a
/// publish that it missed is late, not lost.
void Worker::rest(std::uint32_t seen) noexcept {
  if (all_.host_.anybody_waits()) return;
  parks.add(1);
  std::int64_t left = all_.rest_ns_.load(std::memory_order_relaxed);  // relaxed: a limit of time
  for (std::int64_t slice = kFirstRestNs; left > 0; slice = kLongestRestNs) {
    if (futex_wait(key, seen, std::min(left, slice))) {
      wakes.add(1);
      return;
    }
    left -= slice;
    for (const Held& h : held_) {
      if (depth_of(*h.channel) >= kQuantum) return;
    }
  }
}

}  // namespace ringmain::engine
