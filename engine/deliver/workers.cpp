#include "engine/deliver/workers.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdio>
#include <system_error>

#include "engine/system/assert.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/join_deadline.hpp"

namespace ringmain::engine {

Workers::Workers(const WorkersOptions& options, ChannelHost& host, ChannelTable& table,
                 Drainers& drainers)
    : options_(options), host_(host), table_(table), drainers_(drainers) {
  const unsigned count = std::clamp<unsigned>(options_.count, 1, kWorkersMax);
  for (unsigned i = 0; i < count; ++i)
    workers_.push_back(std::make_unique<Worker>(*this, i, options_.wait));
}

unsigned Workers::start() {
  RINGMAIN_ASSERT(started_ == 0 && count_ == 0);  // once
  if (options_.manual) {
    gone_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_release);  // q.over
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
      drainers_.watch(worker);
      started_ |= 1u << running;
    }
  } catch (const std::exception&) {
    // No thread, or no memory for one: fewer run than were asked for. count_ is too high then; the
    // workers only pass leases on more often.
  }
  const auto missing = static_cast<std::uint32_t>(workers_.size()) - running;
  gone_.fetch_add(missing, std::memory_order_acq_rel);  // q.over
  return running;
}

bool Workers::visited(const ChannelCore& channel) const noexcept {
  return std::any_of(workers_.begin(), workers_.end(), [&channel](const auto& w) {
    return w->visiting.load(std::memory_order_acquire) == &channel;  // n.unread
  });
}

void Workers::dispose(ChannelCore& channel) noexcept {
  table_.dispose(channel, [this](const ChannelCore& c) { return visited(c); });
}

void Workers::trim() noexcept {
  table_.trim([this](const ChannelCore& c) { return visited(c); });
}

// --- waking ---

void Workers::signal(const ChannelCore& channel, std::uint64_t& woke) noexcept {
  ready_.signal_once(channel.index());
  wake_one(woke);
}

void Workers::signal_anew(const ChannelCore& channel) noexcept {
  ready_.signal(channel.index());
  std::uint64_t woke = 0;
  wake_one(woke);
}

/// Each thread wakes a worker once for each of its parks. No thread relies on another's having done
/// so: that one may have been stopped before it did. Model: wake_once.pml.
void Workers::wake_one(std::uint64_t& woke) noexcept {
  const std::uint64_t idle = idle_.load(std::memory_order_seq_cst);  // s.signal
  const auto parked = static_cast<std::uint32_t>(idle & kParkedMask);
  if ((idle & ~std::uint64_t{kParkedMask}) != 0 || parked == 0) return;  // or a worker searches
  Worker& worker = *workers_[static_cast<std::size_t>(std::countr_zero(parked))];
  const std::uint64_t park = worker.park_number.load(std::memory_order_acquire);  // s.signal
  if (park == woke) return;
  worker.key.fetch_add(1,
                       std::memory_order_release);  // s.signal: it read its key before the number
  // `woke` last: a signal handler that comes before and waits for room wakes the worker itself.
  futex_wake(worker.key, 1);
  woke = park;
}

void Workers::watch_realtime() noexcept {
  realtime_.store(1, std::memory_order_seq_cst);  // s.signal
  for (const auto& w : workers_) {
    w->key.fetch_add(1, std::memory_order_release);  // s.signal: sleepers get a limit
    futex_wake(w->key, 1);
  }
}

void Workers::wake_all() noexcept {
  for (const auto& w : workers_) {
    w->key.fetch_add(1, std::memory_order_release);  // s.signal
    futex_wake(w->key, 1);
  }
}

void Workers::set_rest(std::int64_t ns) noexcept {
  rest_ns_.store(
      ns, std::memory_order_relaxed);  // relaxed: a worker that rests is woken, and reads it anew
  end_rests();
}

/// A worker that begins to rest meanwhile first looks whether a thread waits, and then does not
/// rest.
void Workers::end_rests() noexcept {
  if (host_.forked() || resting() == 0) return;
  for (const auto& w : workers_) {
    w->key.fetch_add(1, std::memory_order_release);  // s.signal: sleepers look again
    futex_wake(w->key, 1);
  }
}

void Workers::signal_realtime() noexcept {
  table_.for_each_locked([this](const ChannelCore& c) {
    if (!c.has_realtime() || c.line.leased.load(std::memory_order_relaxed) != 0)
      return;  // relaxed: a hint
    ready_.signal(c.index());
  });
}

// --- figures ---

std::vector<WorkerCounts> Workers::counts() const {
  std::vector<WorkerCounts> all;
  for (const auto& w : workers_)
    all.push_back({w->parks.get(), w->wakes.get(), w->batches.get(), w->events.get()});
  return all;
}

// --- the end ---

bool Workers::await_gone(std::int64_t limit_ns) noexcept {
  const JoinDeadline join_deadline(limit_ns);
  for (;;) {
    const std::uint32_t gone = gone_.load(std::memory_order_acquire);  // q.over
    if (gone >= workers_.size()) return true;
    const bool in_callback = std::any_of(workers_.begin(), workers_.end(), [](const auto& w) {
      return w->calling.load(std::memory_order_relaxed) != 0;  // relaxed: a look
    });
    const std::int64_t left = join_deadline.left_ns(in_callback);
    if (left == 0) return false;
    futex_wait(gone_, gone, left);
  }
}

bool Workers::join(std::int64_t limit_ns, std::vector<std::uint32_t>& stuck) noexcept {
  if (await_gone(limit_ns)) {
    for (const auto& w : workers_) {
      if (w->thread.joinable()) w->thread.join();
    }
    return true;
  }
  for (const auto& w : workers_) {
    const std::uint64_t calling = w->calling.load(std::memory_order_relaxed);  // relaxed: a report
    try {
      if (calling != 0) stuck.push_back(watch_id_of(calling));
    } catch (const std::bad_alloc&) {
      // The report lacks a name. Nothing depends on it.
    }
    if (w->thread.joinable()) w->thread.detach();
  }
  return false;
}

}  // namespace ringmain::engine
