#include "engine/watch/housekeeper.hpp"

#include <algorithm>
#include <climits>
#include <new>
#include <system_error>
#include <utility>

#include "engine/channel/channel_figures.hpp"
#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/join_deadline.hpp"

namespace ringmain::engine {

// --- the thread ---

Housekeeper::~Housekeeper() {
  if (thread_.joinable()) thread_.detach();  // stop() left it in a callback
}

bool Housekeeper::start(const WorkersOptions& options) noexcept {
  running_.store(1, std::memory_order_release);  // h.rounds
  try {
    thread_ = std::thread([this, &options] {
      configure_thread(options, (options.name.substr(0, 12) + "/hk").c_str());
      run();
    });
    return true;
  } catch (const std::exception&) {                // no thread, or no memory for one
    running_.store(0, std::memory_order_release);  // h.rounds
    return false;
  }
}

void Housekeeper::run() noexcept {
  last_look_ns_ = now_ns();
  for (std::uint32_t notified = 0; (notified & EventCount::kQuit) == 0;) {
    std::int64_t long_wait = losing_ ? kLookNs : kLongWaitNs;
    if (reporter_)
      long_wait = std::clamp<std::int64_t>(reporter_->due_ns() - now_ns(), 0, long_wait);
    const std::int64_t short_wait = std::min(short_wait_ns(), long_wait);
    std::int64_t asked = long_wait;
    notified = inbox_.event_count().wait(short_wait, long_wait, [&] {
      const bool busy = in_.workers.anybody_awake() || in_.own_threads.anybody_awake();
      if (busy) asked = short_wait;
      return busy;
    });
    wakes_.add(1);
    (void)round(notified, now_ns(), asked);
  }
  running_.store(0, std::memory_order_release);  // h.rounds
  // For a thread that waits for a round that will not come: the word changes, and it sees that the
  // housekeeper has ended.
  tell_rounds(begun_.load(std::memory_order_relaxed) + 1);  // relaxed: only this thread counts it
}

void Housekeeper::tell_rounds(std::uint32_t finished) noexcept {
  finished_.store(finished, std::memory_order_release);  // h.rounds
  futex_wake(finished_, INT_MAX);
}

bool Housekeeper::stop(std::int64_t limit_ns) noexcept {
  if (!thread_.joinable()) return true;
  const JoinDeadline join_deadline(limit_ns);
  inbox_.event_count().notify(EventCount::kQuit);
  for (;;) {
    const std::uint32_t seen = finished_.load(std::memory_order_acquire);  // h.rounds
    if (!running()) break;
    const std::int64_t left = join_deadline.left_ns(reporter_ && reporter_->is_calling());
    if (left == 0) return false;
    futex_wait(finished_, seen, left);
  }
  thread_.join();
  return true;
}

bool Housekeeper::await_round(std::int64_t limit_ns, std::uint32_t why) noexcept {
  if (in_callback()) return false;
  if (in_.host.manual()) {  // there the caller does the round, one thread at a time
    static std::mutex manual;
    const std::lock_guard lock(manual);
    return round(why | EventCount::kLast, now_ns(), 0);
  }
  const Deadline deadline(limit_ns);
  // Caller and housekeeper change the count by read-modify-writes: a round that begins later sees
  // what the caller did before.
  const std::uint32_t wanted = begun_.fetch_add(0, std::memory_order_acq_rel) + 1;  // h.asked
  inbox_.event_count().notify(why);
  for (;;) {
    const std::uint32_t done = finished_.load(std::memory_order_acquire);  // h.rounds
    if (!running()) return false;
    if (static_cast<std::int32_t>(done - wanted) >= 0) return true;
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return false;
    futex_wait(finished_, done, left);
  }
}

bool Housekeeper::round(std::uint32_t notified, std::int64_t now, std::int64_t asked_ns) noexcept {
  const std::uint32_t number = begun_.fetch_add(1, std::memory_order_acq_rel) + 1;  // h.asked
  // The reporter may call the user's code, which must not wait for the housekeeper.
  const CallbackScope scope;
  const bool last = (notified & EventCount::kLast) != 0;
  try {
    watch(clock_.look(now, asked_ns));
    if (inbox_.take_news()) {
      for_each_channel([](ChannelCore& channel) { channel.touch_lanes(); });
      tell_throws(now);
    }
    if (now >= next_look_ns_ || last) look_at_channels(now, last);
  } catch (const std::bad_alloc&) {
    // Nothing is lost: the next round finds it again.
  }
  const bool all = !reporter_ || reporter_->round(notified, now);
  in_.host.retire_list().reclaim_all();
  if (all || last) tell_rounds(number);  // else its waiters wait for the next round
  return all;
}

// --- the watchdog ---

/// Makes no list of channels: a round that has nothing to tell allocates nothing.
template <class F>
void Housekeeper::for_each_channel(F f) const {
  std::uint32_t index = 0;
  while (const Ref<ChannelCore> channel = in_.table.next_channel(index)) f(*channel);
}

/// A subscriber is listed first and calls budget() then, so one that is missing in the lists here
/// lowers the smallest afterwards.
void Housekeeper::find_smallest_budget() noexcept {
  if (!inbox_.forget_stale_budget()) return;
  for_each_channel(
      [this](const ChannelCore& c) { (void)inbox_.lower_budget(c.smallest_budget_ns()); });
}

std::int64_t Housekeeper::short_wait_ns() const noexcept {
  const std::int64_t smallest = inbox_.smallest_budget_ns();
  const std::int64_t short_wait =
      smallest == 0 ? kLongWaitNs : times_ns(clock_.stretch(), smallest / 2);
  return std::clamp<std::int64_t>(short_wait, kShortWaitNsMin, kLongWaitNs);
}

void Housekeeper::watch(std::int64_t counted_ns) {
  const std::int64_t smallest = inbox_.smallest_budget_ns();
  struct Long {
    const Drainer* drainer;
    std::uint64_t word;
    std::int64_t seen_ns;
  };
  std::vector<Long> long_ones;
  in_.drainers.for_each([&](Drainer& d) {
    const std::uint64_t word = d.calling.load(std::memory_order_relaxed);  // relaxed: a look
    const std::int64_t seen = d.turn.look(word, counted_ns);
    if (smallest != 0 && seen >= smallest) long_ones.push_back({&d, word, seen});
  });
  // Lock order: a channel's lock comes before the drainers', so the subscribers are looked up after
  // the drainers' is released.
  std::vector<SlowTurn> slow;
  for (const Long& l : long_ones) {
    in_.table.with_subscriber(watch_id_of(l.word), [&](Subscriber& s, const ChannelCore& channel) {
      if (s.budget_ns == 0 || l.seen_ns < s.budget_ns) return;
      s.longest_ns.raise(static_cast<std::uint64_t>(l.seen_ns));
      bool first = false;
      in_.drainers.for_each([&](Drainer& d) { first |= &d == l.drainer && d.turn.tell(); });
      if (!first) return;
      s.slow.add(1);
      slow.push_back({s.name, channel.options().name, l.seen_ns, s.budget_ns});
    });
  }
  if (!reporter_) return;
  for (const SlowTurn& turn : slow) reporter_->slow(turn);
}

// --- subscribers that throw ---

/// Tells at most once per second of each subscriber, however often it throws, and of a quarantine
/// at once.
void Housekeeper::tell_throws(std::int64_t now) {
  std::vector<Thrown> told;
  bool more = false;
  for_each_channel([&](ChannelCore& of) {
    of.for_each_subscriber([&](Subscriber& s) {
      Throws& t = s.throws;
      if (!t.waits()) return;
      const std::string& channel = of.options().name;
      if (t.take(Throws::kQuarantined) != 0)
        told.push_back({s.name, channel, t.words(), t.max(), true});
      if (t.told_ns != 0 && now - t.told_ns < Throws::kWindowNs) {
        more |= t.waits();
      } else if (t.take(Throws::kThrew) != 0) {
        const std::uint64_t all = s.threw.get();
        told.push_back({s.name, channel, t.words(), all - t.told_count, false});
        t.told_ns = now;
        t.told_count = all;
      }
    });
  });
  if (more) inbox_.keep_news();  // a second later
  if (!reporter_) return;
  for (const Thrown& t : told) reporter_->threw(t);
}

// --- losses, depth, memory ---

void Housekeeper::look_at_channels(std::int64_t now, bool last) {
  enum : std::int64_t { kShareOfTime = 50 };
  const std::int64_t began = now_ns();
  losing_ = false;
  for_each_channel([&](ChannelCore& channel) { look_at(channel, now, last); });
  last_look_ns_ = now;
  find_smallest_budget();
  in_.workers.trim();
  next_look_ns_ = now + std::max<std::int64_t>(kLookNs, kShareOfTime * (now_ns() - began));
}

/// A burst is over when a look finds nothing new, or after a second, so that a lasting one is told
/// too.
void Housekeeper::look_at(ChannelCore& channel, std::int64_t now, bool last) noexcept {
  channel.trim();
  ChannelCore::Looked& l = channel.looked;
  l.depth_max.raise(depth_of(channel));
  if (channel.options().tells_no_losses) return;
  const Losses lost = losses_of(channel);
  const bool more = lost != l.lost;
  if (more && l.lost == l.told) l.first_ns = last_look_ns_;
  if (more) l.last_ns = now;
  l.lost = lost;
  const bool over = last || !more || now - l.first_ns >= kLongWaitNs;
  if (lost == l.told || !reporter_) return;
  if (!over) {
    losing_ = true;
    return;
  }
  if (reporter_->lost(channel, lost - l.told, l.first_ns, l.last_ns)) l.told = lost;
}

}  // namespace ringmain::engine
