#include "engine/deliver/workers.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdio>
#include <system_error>

#include "engine/system/configure_thread.hpp"

namespace ringmain::engine {

Workers::Workers(WorkersOptions options) : ForkWitness(kForkWorkers), options_(std::move(options)) {
  const unsigned count = std::clamp<unsigned>(options_.count, 1, kWorkersMax);
  for (unsigned i = 0; i < count; ++i)
    workers_.push_back(std::make_unique<Worker>(*this, i, options_.wait));
  drainers_.reserve(count);
  // So that taking and giving an index back never fails. Untouched until used.
  free_.reserve(kChannelsMax);
  disposed_.reserve(kChannelsMax);
  begin_watching();
}

Workers::~Workers() {
  end_watching();
  if (!forked()) retire_list_.close();  // where nobody called stop()
}

/// No lock: another thread may have held it. What is in the table is held by it.
void Workers::in_child() noexcept {
  aborting_.store(true, std::memory_order_relaxed);  // relaxed: this is the only thread
  quit_.store(1, std::memory_order_relaxed);         // relaxed: as above
  for (auto& entry : table_) {
    if (ChannelCore* c = entry.load(std::memory_order_acquire)) c->become_forked();  // E6
  }
}

unsigned Workers::start() {
  (void)barrier_is_fence();  // registers the process before any lane exists
  if (options_.manual) {
    gone_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_release);  // Q1
    return 0;
  }
  count_ = static_cast<unsigned>(workers_.size());
  const BlockedSignals blocked;
  unsigned running = 0;
  try {
    for (; running < count_; ++running) {
      Worker& worker = *workers_[running];
      worker.thread = std::thread([this, &worker, running] {
        char name[16];  // the kernel keeps 15 characters: the index must survive
        std::snprintf(name, sizeof name, "%.12s/%u", options_.name.c_str(), running % 100);
        configure_thread(options_, name);
        worker.run();
      });
      watch(worker);
      started_ |= 1u << running;
    }
  } catch (const std::exception&) {
    // No thread, or no memory for one: fewer than asked for. count_ reads high then, which only
    // makes the others more polite.
  }
  if (running != 0) (void)house_.start(options_);  // without one the bus runs too
  const auto missing = static_cast<std::uint32_t>(workers_.size()) - running;
  gone_.fetch_add(missing, std::memory_order_acq_rel);  // Q1
  return running;
}

bool Workers::add(ChannelCore& channel) noexcept {
  if (forked()) return true;  // as behind stop()
  const std::lock_guard lock(mutex_);
  if (closing_) channel.close_line();
  if (stopped()) return true;  // nobody will drain it, and nobody can publish to it
  std::uint32_t index = next_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (next_ == kChannelsMax) {
    return false;
  } else {
    ++next_;
  }
  channel.set_index(index);
  channel.hold();
  // Without threads nobody sleeps, so that nobody is to be signalled.
  if (options_.manual && !channel.options().pulled)
    channel.line.leased.store(1, std::memory_order_release);  // E3
  table_[index].store(&channel, std::memory_order_release);   // E6
  ready_.use(next_);
  return true;
}

void Workers::retire(ChannelCore& channel) noexcept {
  if (forked()) return;
  if (channel.options().pulled) return dispose(channel);  // no worker ever has it
  if (options_.manual && !channel.anything_left()) return dispose(channel);
  channel.retired.store(1, std::memory_order_release);  // Q1
  // Also if it is signalled already: whoever takes this signal must see the store before it.
  ready_.signal(channel.index());
  std::uint64_t woke = 0;
  wake_one(woke);
}

/// By the worker that holds the lease, which it keeps: nobody else can get at the channel.
void Workers::dispose(ChannelCore& channel) noexcept {
  const std::lock_guard lock(mutex_);
  if (table_[channel.index()].load(std::memory_order_relaxed) != &channel)
    return;                                                           // relaxed: under our lock
  table_[channel.index()].store(nullptr, std::memory_order_release);  // E6
  free_.push_back(channel.index());
  disposed_.push_back(&channel);
  free_disposed();
}

void Workers::free_disposed() noexcept {
  asymmetric_fence_heavy();  // L5
  std::erase_if(disposed_, [this](ChannelCore* c) {
    for (const auto& w : workers_) {
      if (w->visiting.load(std::memory_order_acquire) == c) return false;  // N2
    }
    c->release();
    return true;
  });
}

void Workers::trim() noexcept {
  const std::lock_guard lock(mutex_);
  if (!disposed_.empty()) free_disposed();
}

void Workers::watch(Drainer& drainer) {
  const std::lock_guard lock(drainers_mutex_);
  drainers_.push_back(&drainer);
}

void Workers::unwatch(Drainer& drainer) noexcept {
  const std::lock_guard lock(drainers_mutex_);
  std::erase(drainers_, &drainer);
}

// --- waking ---

void Workers::signal(ChannelCore& channel, std::uint64_t& woke) noexcept {
  ready_.signal_once(channel.index());
  wake_one(woke);
}

/// Once for each park: until the worker is up, whoever woke it need not do it again. Nobody relies
/// on what another has done: he may have been stopped before he did it. Model: wake_once.pml.
void Workers::wake_one(std::uint64_t& woke) noexcept {
  const std::uint64_t idle = idle_.load(std::memory_order_seq_cst);  // S
  const auto parked = static_cast<std::uint32_t>(idle & kParkedMask);
  if ((idle & ~std::uint64_t{kParkedMask}) != 0 || parked == 0) return;  // or somebody searches
  Worker& worker = *workers_[static_cast<std::size_t>(std::countr_zero(parked))];
  const std::uint64_t park = worker.park_number.load(std::memory_order_acquire);  // S
  if (park == woke) return;
  worker.key.fetch_add(1, std::memory_order_release);  // S: it read its key before the number
  futex_wake(worker.key, 1);
  woke = park;  // now only: a signal handler that comes before and waits for room wakes it itself
}

void Workers::wake_reclaimer() noexcept {
  std::uint64_t woke = 0;
  wake_one(woke);
}

void Workers::watch_realtime() noexcept {
  realtime_.store(1, std::memory_order_seq_cst);  // S
  for (const auto& w : workers_) {
    w->key.fetch_add(1, std::memory_order_release);  // S: whoever sleeps for ever looks again
    futex_wake(w->key, 1);
  }
}

void Workers::set_rest(std::int64_t ns) noexcept {
  rest_ns_.store(ns, std::memory_order_relaxed);  // relaxed: who rests is woken, and reads it anew
  end_rests();
}

/// Whoever begins to rest meanwhile looks at waiters_ before, and rests no longer than it may.
void Workers::end_rests() noexcept {
  if (forked() || resting() == 0) return;
  for (const auto& w : workers_) {
    w->key.fetch_add(1, std::memory_order_release);  // S: whoever sleeps looks again
    futex_wake(w->key, 1);
  }
}

void Workers::signal_realtime() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < next_; ++i) {
    const ChannelCore* c =
        table_[i].load(std::memory_order_relaxed);  // relaxed: written under our lock
    if (c == nullptr || !c->has_realtime() || c->line.leased.load(std::memory_order_relaxed) != 0)
      continue;  // relaxed: a hint
    ready_.signal(i);
  }
}

void Workers::tell_waiters() noexcept {
  done_key_.fetch_add(1, std::memory_order_release);  // E1
  futex_wake(done_key_, INT_MAX);
}

// --- figures ---

void Workers::reclaim(SubscriberList& list) const {
  std::vector<const Reading*> all;
  const std::lock_guard lock(drainers_mutex_);  // a drainer may end: not while it is looked at
  all.reserve(workers_.size() + drainers_.size());
  for (const auto& w : workers_) all.push_back(&w->reading);
  for (const Drainer* d : drainers_) all.push_back(&d->reading);  // some of them twice
  list.reclaim(all);
}

std::vector<Ref<ChannelCore>> Workers::channels() const {
  const std::lock_guard lock(mutex_);
  std::vector<Ref<ChannelCore>> all;
  for (std::uint32_t i = 0; i < next_; ++i) {
    if (ChannelCore* c = table_[i].load(std::memory_order_relaxed))
      all.emplace_back(c);  // relaxed: under our lock
  }
  return all;
}

Ref<ChannelCore> Workers::next_channel(std::uint32_t& index) const noexcept {
  const std::lock_guard lock(mutex_);
  while (index < next_) {
    if (ChannelCore* c = table_[index++].load(std::memory_order_relaxed))
      return c;  // relaxed: under our lock
  }
  return {};
}

std::vector<WorkerCounts> Workers::counts() const {
  std::vector<WorkerCounts> all;
  for (const auto& w : workers_)
    all.push_back({w->parks.get(), w->wakes.get(), w->batches.get(), w->events.get()});
  return all;
}

}  // namespace ringmain::engine
