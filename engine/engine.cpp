#include "engine/engine.hpp"

#include <algorithm>
#include <climits>
#include <new>
#include <utility>

#include "engine/channel/channel_figures.hpp"
#include "engine/system/configure_thread.hpp"

namespace ringmain::engine {

Engine::Engine(WorkersOptions options)
    : ChannelHost(options.manual),
      ForkWitness(kForkWorkers),
      options_(std::move(options)),
      drainers_(std::min<std::size_t>(options_.count, Workers::kWorkersMax)),
      workers_(options_, *this, table_, drainers_),
      own_threads_(options_, drainers_, inbox_),
      manual_delivery_(*this, table_, workers_),
      flush_(*this, table_, workers_),
      house_({*this, table_, drainers_, workers_, own_threads_}) {
  begin_watching();
}

Engine::~Engine() {
  // What is left to do here after stop() takes no lock: a publishing thread may be the last to let
  // go of a channel, inside a call of somebody who waits for what the holder of that lock waits
  // for.
  if (hears_forks_) end_watching();
  if (!forked()) retire_list_.close();  // in case stop() was not called
}

/// Takes no lock: a thread that is gone may hold it. The channels in the table stay held.
void Engine::in_child() noexcept {
  aborting_.store(true, std::memory_order_relaxed);  // relaxed: this is the only thread
  quit_.store(1, std::memory_order_relaxed);         // relaxed: as above
  table_.become_forked();
}

unsigned Engine::start() {
  (void)barrier_is_fence();      // registers the process before any lane exists
  const BlockedSignals blocked;  // in all threads that are started here
  const unsigned running = workers_.start();
  if (running != 0) (void)house_.start(options_);  // without one the bus runs too
  return running;
}

// --- for channels ---

bool Engine::add(ChannelCore& channel) noexcept {
  if (forked()) return true;  // as after stop()
  return table_.add(channel, *this, workers_.ready());
}

void Engine::retire(ChannelCore& channel) noexcept {
  if (forked()) return;
  if (channel.options().pulled) return workers_.dispose(channel);  // no worker ever has it
  if (manual() && !channel.anything_left()) return workers_.dispose(channel);
  channel.retired.store(1, std::memory_order_release);  // q.over
  // Also if it is signalled already: the worker that takes this signal must see the store before
  // it.
  workers_.signal_anew(channel);
}

void Engine::signal(ChannelCore& channel, std::uint64_t& woke) noexcept {
  workers_.signal(channel, woke);
}

void Engine::wake_reclaimer() noexcept {
  std::uint64_t woke = 0;
  workers_.wake_one(woke);
}

void Engine::watch_realtime() noexcept {
  workers_.watch_realtime();
}

void Engine::end_rests() noexcept {
  workers_.end_rests();
}

void Engine::reclaim(SubscriberList& list) const {
  std::vector<const Reading*> readings;
  for (const auto& w : workers_.all()) readings.push_back(&w->reading);
  drainers_.reclaim(list, std::move(readings));
}

bool Engine::calling(const Subscriber& subscriber) const noexcept {
  const auto& workers = workers_.all();
  return drainers_.calling(subscriber) ||  // some of them twice
         std::any_of(workers.begin(), workers.end(),
                     [&subscriber](const auto& w) { return w->shows(subscriber); });
}

std::size_t Engine::deliver(std::size_t max, std::int64_t limit_ns) noexcept {
  return manual_delivery_.deliver(max, limit_ns);
}

// --- the end ---

bool Engine::flush(std::int64_t limit_ns) noexcept {
  if (in_callback() || forked()) return false;
  if (stopped()) return true;
  const Deadline deadline(limit_ns);
  // Mailboxes second: by then they have what the first round delivered to their feeders.
  return flush_.drain_all(false, false, limit_ns) &&
         flush_.drain_all(true, false, deadline.left_ns());
}

Engine::Stopped Engine::stop(bool abort, std::int64_t limit_ns) noexcept {
  Stopped result;
  if (forked()) return result;
  if (in_callback()) {
    result.refused = true;
    return result;
  }
  const Deadline deadline(limit_ns);
  enum : std::int64_t { kLastWordsNs = 100'000'000 };  // of the bus, before its channels close
  const bool mine = await(stopping_, deadline, [this] {
    return stopping_.exchange(1, std::memory_order_acquire) == 0;  // q.turn
  });
  if (!mine) {  // another stop() takes longer than this caller can wait
    result.left = left_over(abort);
    return result;
  }
  table_.close();
  bool drained = true;
  if (!stopped()) {
    (void)house_.await_round(
        limit_ns < 0 ? kLastWordsNs : std::min<std::int64_t>(deadline.left_ns(), kLastWordsNs),
        EventCount::kRound | EventCount::kLast);
    if (abort) aborting_.store(true, std::memory_order_seq_cst);  // s.signal
    drained = flush_.drain_all(false, true, deadline.left_ns());
    drained = flush_.drain_all(true, true, deadline.left_ns()) && drained;
    if (!drained)
      aborting_.store(true,
                      std::memory_order_seq_cst);  // s.signal: the rest is discarded, not late
    quit_.store(1, std::memory_order_release);     // q.over
    workers_.wake_all();
  }
  join_all(drained, deadline, abort, result);
  stopping_.store(0, std::memory_order_release);  // q.turn
  futex_wake(stopping_, INT_MAX);
  return result;
}

void Engine::join_all(bool drained, const Deadline& deadline, bool abort,
                      Stopped& result) noexcept {
  for (std::uint32_t i = 0; const auto c = next_channel(i);) {
    if (c->options().own_thread) tell_reader(c->pull);
  }
  std::vector<std::uint32_t> stuck;
  bool joined = workers_.join(deadline.left_ns(), stuck);
  name_stuck(stuck, result);
  own_threads_.join(joined ? deadline.left_ns() : 0, result.stuck);
  if (!house_.stop(deadline.left_ns())) {
    try {
      result.stuck.push_back(house_.stuck_in());
    } catch (const std::bad_alloc&) {
      // The report lacks a name. Nothing depends on it.
    }
    joined = false;
  }
  retire_list_
      .close();  // no thread reclaims any more: one that retires a subscriber later destroys it
  if (!drained || !joined) result.left = left_over(abort);
  let_go(joined);
}

void Engine::name_stuck(const std::vector<std::uint32_t>& ids, Stopped& result) const noexcept {
  for (const std::uint32_t id : ids) {
    try {
      result.stuck.push_back(name_of(id));
    } catch (const std::bad_alloc&) {
      // As above.
    }
  }
}

/// What a stop() that ran out of time did not deliver.
std::uint64_t Engine::left_over(bool abort) const noexcept {
  std::uint64_t left = 0;
  for (std::uint32_t i = 0; const auto c = next_channel(i);) {
    if (c->options().for_its_user()) continue;  // its user may still take what is there
    const ChannelCounts counts = counts_of(*c);
    left += counts.pending + (abort ? 0 : counts.discarded);
  }
  return left;
}

/// Draining has ended. Where a callback still runs, all that it may touch is kept for ever.
void Engine::let_go(bool joined) noexcept {
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
  table_.clear();
  if (std::exchange(hears_forks_, false)) end_watching();
}

void Engine::keep_for_ever() noexcept {
  // Listed, so that a leak checker sees that it is kept on purpose.
  static Atomic<Engine*> kept{nullptr};
  if (std::exchange(kept_, true)) return;
  hold();
  next_kept_ = kept.load(std::memory_order_relaxed);  // relaxed: nobody walks the list
  while (!kept.compare_exchange_weak(next_kept_, this, std::memory_order_relaxed)) {  // relaxed
  }
}

std::string Engine::name_of(std::uint32_t watch_id) const {
  std::string name;
  table_.with_subscriber(watch_id,
                         [&name](const Subscriber& s, const ChannelCore&) { name = s.name; });
  return name.empty() ? "(unnamed)" : name;
}

}  // namespace ringmain::engine
