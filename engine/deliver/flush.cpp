#include "engine/deliver/flush.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <sched.h>

#include "engine/deliver/pull.hpp"

namespace ringmain::engine {
namespace {

struct Mark {
  Ref<ChannelCore> channel;  // a mailbox may end meanwhile
  const Atomic<std::uint64_t>* done =
      nullptr;  // the lane's `consumed`, or `taken` if it is delivered in parallel
  std::uint64_t published = 0;
};

/// Is the channel part of this round? One that its user drains never is.
bool concerned(const ChannelCore& channel, bool mailboxes) noexcept {
  return !channel.options().for_its_user() && channel.options().mailbox == mailboxes;
}

void free_blocked_publishers(const ChannelCore& channel) noexcept {
  for (std::uint32_t i = 0; i < channel.lane_count(); ++i) {
    Lane& lane = channel.lane(i);
    lane.when_full.room_key.fetch_add(1, std::memory_order_release);  // e.consumed
    futex_wake(lane.when_full.room_key, INT_MAX);
  }
}

}  // namespace

void Flush::help(ChannelCore& channel) noexcept {
  if (channel.line.leased.load(std::memory_order_relaxed) != 0)
    return;  // relaxed: asymmetric_fence_heavy() came before
  if (channel.options().pulled) return tell_reader(channel.pull);
  workers_.signal_anew(channel);
}

/// Waits until no publisher is between "busy" and "published". That takes nanoseconds, unless one
/// was descheduled there.
bool Flush::quiet(bool mailboxes, std::int64_t limit_ns) const noexcept {
  const Deadline deadline(limit_ns);
  for (std::uint32_t c = 0; const auto channel = table_.next_channel(c);) {
    if (!concerned(*channel, mailboxes)) continue;
    for (std::uint32_t i = 0; i < channel->lane_count(); ++i) {
      while ((channel->lane(i).word.load(std::memory_order_acquire) & 1) != 0) {  // e.published
        if (deadline.passed()) return false;
        ::sched_yield();
      }
    }
  }
  return true;
}

/// Works in portions of lanes, so that it needs no memory: the next portion is read when the last
/// one is delivered.
bool Flush::delivered(bool mailboxes, std::int64_t limit_ns) noexcept {
  enum : std::size_t { kPortion = 256 };
  const Deadline deadline(limit_ns);
  std::array<Mark, kPortion> marks;
  std::size_t count = 0;
  bool parallel = false;
  const auto wait = [&] {
    if (host_.manual()) (void)host_.deliver(ChannelHost::kAll, deadline.left_ns());
    return await(host_.done_key(), deadline, [&] {
      return std::all_of(marks.begin(), marks.begin() + count, [](const Mark& m) {
        return m.done->load(std::memory_order_acquire) >= m.published;  // e.consumed, p.taken
      });
    });
  };
  for (std::uint32_t c = 0; const auto channel = table_.next_channel(c);) {
    if (!concerned(*channel, mailboxes)) continue;
    help(*channel);
    parallel = parallel || channel->options().parallel;
    for (std::uint32_t i = 0; i < channel->lane_count(); ++i) {
      const Lane& lane = channel->lane(i);
      const std::uint64_t published = lane.published();
      const auto& done = channel->options().parallel ? lane.taken : lane.consumed;
      if (done.load(std::memory_order_acquire) >= published) continue;  // e.consumed, p.taken
      if (count == kPortion) {
        if (!wait()) return false;
        count = 0;
      }
      marks[count++] = {channel, &done, published};
    }
  }
  return wait() && (!parallel || runs_over(deadline));
}

/// What was taken from lanes that are delivered in parallel is in workers' runs: waits until each
/// worker has ended the run that it is in.
bool Flush::runs_over(const Deadline& deadline) noexcept {
  std::array<std::uint64_t, Workers::kWorkersMax> seen{};
  for (std::size_t i = 0; i < workers_.all().size(); ++i)
    seen[i] = workers_.all()[i]->apart.load(std::memory_order_acquire);  // p.runs
  return await(host_.done_key(), deadline, [this, &seen] {
    for (std::size_t i = 0; i < workers_.all().size(); ++i) {
      const std::uint64_t now = workers_.all()[i]->apart.load(std::memory_order_acquire);  // p.runs
      if ((seen[i] & 1) != 0 && now == seen[i]) return false;
    }
    return true;
  });
}

bool Flush::drain_all(bool mailboxes, bool closing, std::int64_t limit_ns) noexcept {
  const Deadline deadline(limit_ns);
  const auto each = [&](auto what) {
    for (std::uint32_t i = 0; const auto channel = table_.next_channel(i);) {
      if (concerned(*channel, mailboxes)) what(*channel);
    }
  };
  if (closing) each([](ChannelCore& c) { c.close_line(); });
  host_.begin_waiting();     // l.waiting
  asymmetric_fence_heavy();  // l.closing, l.waiting
  workers_.end_rests();
  bool done = true;
  if (closing) {
    each([](const ChannelCore& c) { free_blocked_publishers(c); });
    done = quiet(mailboxes, deadline.left_ns());
  }
  done = delivered(mailboxes, deadline.left_ns()) && done;
  host_.end_waiting();
  return done;
}

}  // namespace ringmain::engine
