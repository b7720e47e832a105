// flush() and stop(): when is everything delivered, and how do the workers end?
//
// Both raise waiters_, make every thread pass a barrier (asymmetric_fence_heavy: L1 and L3), read
// how much each lane has published, and wait until that much is consumed. stop() first closes the
// channels and waits until no publisher is between its two looks at the state: what is accepted
// then is all there will be.
#include <algorithm>
#include <array>
#include <climits>
#include <new>
#include <sched.h>
#include <utility>

#include "engine/deliver/workers.hpp"
#include "engine/system/join_deadline.hpp"

namespace ringmain::engine {
namespace {

struct Mark {
  Ref<ChannelCore> channel;                     // a mailbox may end meanwhile
  const Atomic<std::uint64_t>* done = nullptr;  // the lane's; taken, if it is delivered in parallel
  std::uint64_t published = 0;
};

/// Does this round concern it? What its user drains is his.
bool concerned(const ChannelCore& channel, bool mailboxes) noexcept {
  return !channel.options().for_its_user() && channel.options().mailbox == mailboxes;
}

/// Waits on a condition that changes with consumed words.
template <class Done>
bool await(Atomic<std::uint32_t>& key, const Deadline& deadline, Done done) noexcept {
  for (;;) {
    const std::uint32_t seen = key.load(std::memory_order_acquire);  // E1
    if (done()) return true;
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return false;
    futex_wait(key, seen, left);
  }
}

void free_blocked_publishers(const ChannelCore& channel) noexcept {
  for (std::uint32_t i = 0; i < channel.lane_count(); ++i) {
    Lane& lane = channel.lane(i);
    lane.room_key.fetch_add(1, std::memory_order_release);  // E1
    futex_wake(lane.room_key, INT_MAX);
  }
}

}  // namespace

void Workers::help(ChannelCore& channel) noexcept {
  if (channel.line.leased.load(std::memory_order_relaxed) != 0)
    return;  // relaxed: asymmetric_fence_heavy() came before
  if (channel.options().pulled) return tell_reader(channel.pull);
  std::uint64_t woke = 0;
  ready_.signal(channel.index());
  wake_one(woke);
}

/// No publisher is between announcing and committing. They are there for nanoseconds, unless they
/// are descheduled.
bool Workers::quiet(bool mailboxes, std::int64_t limit_ns) const noexcept {
  const Deadline deadline(limit_ns);
  for (std::uint32_t c = 0; const auto channel = next_channel(c);) {
    if (!concerned(*channel, mailboxes)) continue;
    for (std::uint32_t i = 0; i < channel->lane_count(); ++i) {
      while ((channel->lane(i).word.load(std::memory_order_acquire) & 1) != 0) {  // E2
        if (deadline.passed()) return false;
        ::sched_yield();
      }
    }
  }
  return true;
}

/// In portions, so that it needs no memory: the lanes of a later one are read when the earlier ones
/// are done.
bool Workers::delivered(bool mailboxes, std::int64_t limit_ns) noexcept {
  enum : std::size_t { kPortion = 256 };
  const Deadline deadline(limit_ns);
  std::array<Mark, kPortion> marks;
  std::size_t count = 0;
  bool parallel = false;
  const auto wait = [&] {
    if (options_.manual) (void)deliver(kAll, deadline.left_ns());
    return await(done_key_, deadline, [&] {
      return std::all_of(marks.begin(), marks.begin() + count, [](const Mark& m) {
        return m.done->load(std::memory_order_acquire) >= m.published;  // E1, P1
      });
    });
  };
  for (std::uint32_t c = 0; const auto channel = next_channel(c);) {
    if (!concerned(*channel, mailboxes)) continue;
    help(*channel);
    parallel = parallel || channel->options().parallel;
    for (std::uint32_t i = 0; i < channel->lane_count(); ++i) {
      const Lane& lane = channel->lane(i);
      const std::uint64_t published = lane.published();
      const auto& done = channel->options().parallel ? lane.taken : lane.consumed;
      if (done.load(std::memory_order_acquire) >= published) continue;  // E1, P1
      if (count == kPortion) {
        if (!wait()) return false;
        count = 0;
      }
      marks[count++] = {channel, &done, published};
    }
  }
  return wait() && (!parallel || runs_over(deadline));
}

/// What was taken from lanes that are delivered in parallel is with workers: each that is in a run
/// now has come out of it.
bool Workers::runs_over(const Deadline& deadline) noexcept {
  std::array<std::uint64_t, kWorkersMax> seen{};
  for (std::size_t i = 0; i < workers_.size(); ++i)
    seen[i] = workers_[i]->apart.load(std::memory_order_acquire);  // P2
  return await(done_key_, deadline, [this, &seen] {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const std::uint64_t now = workers_[i]->apart.load(std::memory_order_acquire);  // P2
      if ((seen[i] & 1) != 0 && now == seen[i]) return false;
    }
    return true;
  });
}

bool Workers::drain_all(bool mailboxes, bool closing, std::int64_t limit_ns) noexcept {
  const Deadline deadline(limit_ns);
  const auto each = [&](auto what) {
    for (std::uint32_t i = 0; const auto channel = next_channel(i);) {
      if (concerned(*channel, mailboxes)) what(*channel);
    }
  };
  if (closing) each([](ChannelCore& c) { c.close_line(); });
  waiters_.fetch_add(1, std::memory_order_seq_cst);  // L3
  asymmetric_fence_heavy();                          // L1, L3
  end_rests();
  bool done = true;
  if (closing) {
    each([](const ChannelCore& c) { free_blocked_publishers(c); });
    done = quiet(mailboxes, deadline.left_ns());
  }
  done = delivered(mailboxes, deadline.left_ns()) && done;
  waiters_.fetch_sub(
      1, std::memory_order_relaxed);  // relaxed: a worker that sees it late wakes nobody
  return done;
}

bool Workers::flush(std::int64_t limit_ns) noexcept {
  if (in_callback() || forked()) return false;
  if (stopped()) return true;
  const Deadline deadline(limit_ns);
  // Mailboxes second: what the first round delivered to their feeders is in them by then.
  return drain_all(false, false, limit_ns) && drain_all(true, false, deadline.left_ns());
}

Workers::Stopped Workers::stop(bool abort, std::int64_t limit_ns) noexcept {
  Stopped result;
  if (forked()) return result;
  if (in_callback()) {
    result.refused = true;
    return result;
  }
  const Deadline deadline(limit_ns);
  enum : std::int64_t { kLastWordsNs = 100'000'000 };  // of the bus, before its channels close
  const bool mine = await(stopping_, deadline, [this] {
    return stopping_.exchange(1, std::memory_order_acquire) == 0;  // Q2
  });
  if (!mine) {  // another stop() is at it for longer than this caller can wait
    result.left = left_over(abort);
    return result;
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  bool drained = true;
  if (!stopped()) {
    (void)house_.await_round(
        limit_ns < 0 ? kLastWordsNs : std::min<std::int64_t>(deadline.left_ns(), kLastWordsNs),
        EventCount::kRound | EventCount::kLast);
    if (abort) aborting_.store(true, std::memory_order_seq_cst);  // S
    drained = drain_all(false, true, deadline.left_ns());
    drained = drain_all(true, true, deadline.left_ns()) && drained;
    if (!drained)
      aborting_.store(true, std::memory_order_seq_cst);  // S: the rest is discarded, not late
    quit_.store(1, std::memory_order_release);           // Q1
    for (const auto& w : workers_) {
      w->key.fetch_add(1, std::memory_order_release);  // S
      futex_wake(w->key, 1);
    }
  }
  for (std::uint32_t i = 0; const auto c = next_channel(i);) {
    if (c->options().own_thread) tell_reader(c->pull);
  }
  bool joined = join(deadline.left_ns(), result);
  join_own(joined ? deadline.left_ns() : 0, result);
  if (!house_.stop(deadline.left_ns())) {
    try {
      result.stuck.push_back(house_.stuck_in());
    } catch (const std::bad_alloc&) {
      // The report lacks a name; what follows from it does not.
    }
    joined = false;
  }
  retire_list_.close();  // nobody reclaims any more: a thread that retires one later destroys it
  if (!drained || !joined) result.left = left_over(abort);
  let_go(joined);
  stopping_.store(0, std::memory_order_release);  // Q2
  futex_wake(stopping_, INT_MAX);
  return result;
}

/// What a stop() that ran out of time did not deliver.
std::uint64_t Workers::left_over(bool abort) const noexcept {
  std::uint64_t left = 0;
  for (std::uint32_t i = 0; const auto c = next_channel(i);) {
    if (c->options().for_its_user()) continue;  // what is in there is its reader's
    const ChannelCounts counts = c->counts();
    left += counts.pending + (abort ? 0 : counts.discarded);
  }
  return left;
}

/// Nobody is drained here any more. Where a callback still runs, all it may touch is kept for ever.
void Workers::let_go(bool joined) noexcept {
  for (std::uint32_t i = 0; const auto c = next_channel(i);) {
    if (!c->options().pulled) continue;
    c->close_line();
    tell_reader(c->pull);  // it sees that the bus has stopped
  }
  if (!joined) {
    keep_for_ever();
    return;
  }
  house_.let_go();
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < next_; ++i) {
    if (ChannelCore* c = table_[i].exchange(nullptr, std::memory_order_acq_rel))
      c->release();  // E6
  }
  for (ChannelCore* c : disposed_) c->release();
  disposed_.clear();
}

void Workers::keep_for_ever() noexcept {
  // Listed, so that a leak checker sees what is on purpose.
  static Atomic<Workers*> kept{nullptr};
  if (std::exchange(kept_, true)) return;
  hold();
  next_kept_ = kept.load(std::memory_order_relaxed);  // relaxed: nobody walks the list
  while (!kept.compare_exchange_weak(next_kept_, this, std::memory_order_relaxed)) {  // relaxed
  }
}

std::string Workers::name_of(std::uint32_t watch_id) const {
  std::string name;
  with_subscriber(watch_id, [&name](const Subscriber& s, const ChannelCore&) { name = s.name; });
  return name.empty() ? "(unnamed)" : name;
}

bool Workers::await_gone(std::int64_t limit_ns) noexcept {
  const JoinDeadline join_deadline(limit_ns);
  for (;;) {
    const std::uint32_t gone = gone_.load(std::memory_order_acquire);  // Q1
    if (gone >= workers_.size()) return true;
    const bool in_callback = std::any_of(workers_.begin(), workers_.end(), [](const auto& w) {
      return w->calling.load(std::memory_order_relaxed) != 0;  // relaxed: a look
    });
    const std::int64_t left = join_deadline.left_ns(in_callback);
    if (left == 0) return false;
    futex_wait(gone_, gone, left);
  }
}

bool Workers::join(std::int64_t limit_ns, Stopped& result) noexcept {
  if (await_gone(limit_ns)) {
    for (const auto& w : workers_) {
      if (w->thread.joinable()) w->thread.join();
    }
    return true;
  }
  for (const auto& w : workers_) {
    const std::uint64_t calling = w->calling.load(std::memory_order_relaxed);  // relaxed: a report
    try {
      if (calling != 0) result.stuck.push_back(name_of(watch_id_of(calling)));
    } catch (const std::bad_alloc&) {
      // The report lacks a name; what follows from it does not.
    }
    if (w->thread.joinable()) w->thread.detach();
  }
  return false;
}

}  // namespace ringmain::engine
