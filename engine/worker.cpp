#include <algorithm>
#include <bit>
#include <utility>

#include "ringmain/engine/workers.hpp"

namespace ringmain::engine {
namespace {

enum : std::size_t { kQuantum = 256 };
enum : std::uint32_t { kRoundsPerSweep = 256 };
enum : std::int64_t { kSweepNs = 1'000'000, kFirstRealtimeNs = 100'000 };

}  // namespace

Worker::Worker(Workers& all, unsigned index, const WaitOptions& wait)
    : all_(all), index_(index), wait_(wait) {
  held_.reserve(Workers::kChannelsMax);  // a worker that found no memory later could only end
  given_.reserve(Workers::kChannelsMax);
}

void Worker::run() noexcept {
  for (;;) {
    adopt();
    const bool served = serve();
    // A callback forked and came back: nothing of what is here is this process's.
    if (all_.aborting() && all_.forked()) return;
    if (served) continue;
    if (all_.stopped()) break;
    if (dig()) continue;
    if (wait_.look_again()) {
      search();
    } else {
      park();
    }
  }
  give_up();
  stop_searching();
  reading.store(nullptr, std::memory_order_release);   // N2
  all_.gone_.fetch_add(1, std::memory_order_acq_rel);  // Q1
  futex_wake(all_.gone_, 1);
}

// --- leases ---

void Worker::adopt() noexcept {
  const std::uint32_t words = all_.words_.load(std::memory_order_acquire);  // E6
  for (std::uint32_t i = 0; i < words; ++i) {
    // Relaxed looks: the exchange behind them decides, and park() looks again in the order S.
    if (all_.passed_[i].load(std::memory_order_relaxed) != 0) {
      adopt_word(i, all_.passed_[i].exchange(0, std::memory_order_acquire), true);  // E4
    }
    if (all_.signals_[i].load(std::memory_order_relaxed) != 0) {
      adopt_word(i, all_.signals_[i].exchange(0, std::memory_order_seq_cst), false);  // S
    }
  }
}

void Worker::keep(ChannelCore& channel) noexcept {
  const auto after =
      std::upper_bound(held_.begin(), held_.end(), channel.index(),
                       [](std::uint32_t index, const Held& h) { return index < h.index; });
  held_.insert(after, {&channel, channel.index(), true});
}

void Worker::adopt_word(std::uint32_t word, std::uint64_t bits, bool leased) noexcept {
  for (; bits != 0; bits &= bits - 1) {
    Atomic<ChannelCore*>& entry =
        all_.table_[word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))];
    if (leased) {                                    // it is ours, so it is there
      keep(*entry.load(std::memory_order_acquire));  // E6
      continue;
    }
    ChannelCore* channel = entry.load(std::memory_order_acquire);  // E6
    visiting.store(channel, std::memory_order_release);            // N2
    light_or_fence();                                              // L5
    // A bit may be left from the index's last channel: a pulled one is its reader's alone.
    if (channel != nullptr && entry.load(std::memory_order_acquire) == channel &&  // E6
        !channel->options().pulled &&
        channel->line.leased.exchange(1, std::memory_order_seq_cst) == 0) {  // E3, S
      keep(*channel);
    }
    visiting.store(nullptr, std::memory_order_release);  // N2
  }
}

void Worker::pass_all_but(const ChannelCore* kept) noexcept {
  for (const Held& h : held_) {
    if (h.channel == kept) continue;
    const std::uint32_t i = h.channel->index();
    all_.passed_[i / 64].fetch_or(1ull << (i % 64), std::memory_order_seq_cst);  // E4, S
  }
  std::erase_if(held_, [kept](const Held& h) { return h.channel != kept; });
}

// --- serving ---

void Worker::before_callbacks(ChannelCore& channel) noexcept {
  if (std::exchange(was_parked_, false)) all_.house_.bell().stir();
  if (all_.count_ == 1) return;  // nobody to hand anything to
  bool look = searching_;
  stop_searching();
  // A callback may never return: others must be able to serve the rest, and this one too if it
  // delivers in parallel.
  const bool parallel = channel.options().parallel;
  if (held_.size() > 1 || parallel) {
    pass_all_but(parallel ? nullptr : &channel);
    look = true;
  }
  if (look && all_.anything_for_all()) all_.wake_one(woke_);
}

void Worker::stop_searching() noexcept {
  if (!searching_) return;
  all_.idle_.fetch_add(Workers::kEpoch - Workers::kSearching, std::memory_order_seq_cst);  // S
  searching_ = false;
}

/// Destructors of captures are callbacks too: nothing is held while they run. False: there are
/// none.
bool Worker::dig() noexcept {
  if (!all_.graveyard_.occupied()) return false;
  stop_searching();
  pass_all_but(nullptr);
  if (all_.count_ > 1 && all_.anything_for_all()) all_.wake_one(woke_);
  all_.dig();
  return true;
}

bool Worker::serve() noexcept {
  std::size_t served = 0;
  // From the one behind the last, by index: others are passed on before callbacks and adopted again
  // behind them, in any order, and must not lose their turn by it.
  auto at = static_cast<std::size_t>(
      std::upper_bound(held_.begin(), held_.end(), last_served_,
                       [](std::uint32_t index, const Held& h) { return index < h.index; }) -
      held_.begin());
  for (std::size_t i = 0, n = held_.size(); i < n && !held_.empty(); ++i) {
    if (at >= held_.size()) at = 0;
    ChannelCore& channel = *held_[at].channel;
    last_served_ = held_[at].index;
    const std::size_t taken = drain(*this, channel, kQuantum);
    if (taken == 0) {
      if (channel.retired.load(std::memory_order_acquire) != 0 && !channel.anything_left()) {  // Q1
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
        all_.dispose(channel);
      } else {
        ++at;
      }
      continue;
    }
    batches.add(1);
    events.add(taken);
    served += taken;
    if (all_.count_ > 1) {  // the others were passed on: take them up again
      if (!held_.empty()) held_.front().busy = true;
      break;
    }
    held_[at++].busy = true;
  }
  if (served == 0) return false;
  wait_.worked(served);
  realtime_wait_ns_ = kFirstRealtimeNs;
  if (++rounds_ % kRoundsPerSweep == 0) sweep();
  return true;
}

/// Channels that had nothing for a while are given up, so that looking at them costs nothing.
void Worker::sweep() noexcept {
  const std::int64_t now = now_ns();
  if (now - swept_ns_ < kSweepNs) return;
  swept_ns_ = now;
  if (all_.realtime_.load(std::memory_order_relaxed) != 0)
    all_.signal_realtime();  // relaxed: soon is enough
  if (dig()) return;
  given_.clear();
  std::erase_if(held_, [this](Held& h) {
    if (std::exchange(h.busy, false)) return false;
    given_.push_back({h.channel, h.channel->index()});
    h.channel->line.leased.store(0, std::memory_order_release);  // E3
    return true;
  });
  if (!given_.empty()) recheck();
}

void Worker::give_up() noexcept {
  given_.clear();
  for (const Held& h : held_) {
    given_.push_back({h.channel, h.channel->index()});
    h.channel->line.leased.store(0, std::memory_order_release);  // E3
  }
  held_.clear();
}

/// The other half of L2: whoever published without seeing the lease given up is seen here. So is a
/// channel that was retired meanwhile: whoever took that signal may have found it still leased.
void Worker::recheck() noexcept {
  heavy();  // L2
  for (const Given& g : given_) {
    Atomic<ChannelCore*>& entry = all_.table_[g.index];
    visiting.store(g.channel, std::memory_order_release);      // N2
    light_or_fence();                                          // L5
    if (entry.load(std::memory_order_acquire) == g.channel &&  // E6
        (g.channel->anything_left() ||
         g.channel->retired.load(std::memory_order_acquire) != 0) &&           // Q1
        g.channel->line.leased.exchange(1, std::memory_order_seq_cst) == 0) {  // E3, S
      keep(*g.channel);
    }
    visiting.store(nullptr, std::memory_order_release);  // N2
  }
}

// --- waiting ---

void Worker::search() noexcept {
  if (searching_ || all_.count_ == 1) return;
  all_.idle_.fetch_add(Workers::kEpoch + Workers::kSearching, std::memory_order_seq_cst);  // S
  searching_ = true;
}

void Worker::park() noexcept {
  give_up();
  reading.store(nullptr, std::memory_order_release);  // N2
  const std::uint32_t seen =
      key.load(std::memory_order_relaxed);  // relaxed: before the RMW that says "parked"
  const std::uint64_t me = 1ull << index_;
  all_.idle_.fetch_add(Workers::kEpoch + me - std::uint64_t{searching_} * Workers::kSearching,
                       std::memory_order_seq_cst);  // S
  searching_ = false;
  recheck();
  if (held_.empty() && !all_.anything_for_all() && !all_.graveyard_.occupied() && !all_.stopped()) {
    std::int64_t limit = -1;
    if (all_.realtime_.load(std::memory_order_relaxed) != 0) {  // relaxed: a new one wakes us
      const std::int64_t longest = all_.options_.wait.realtime_ns_max;
      limit = realtime_wait_ns_ =
          std::min(longest, std::max<std::int64_t>(kFirstRealtimeNs, 2 * realtime_wait_ns_));
    }
    parks.add(1);
    if (futex_wait(key, seen, limit)) {
      wakes.add(1);
    } else {
      all_.signal_realtime();
    }
  }
  all_.idle_.fetch_add(Workers::kEpoch - me + std::uint64_t{all_.count_ > 1} * Workers::kSearching,
                       std::memory_order_seq_cst);  // S
  searching_ = all_.count_ > 1;
  was_parked_ = true;
}

}  // namespace ringmain::engine
