#include "engine/deliver/own_thread.hpp"

#include <algorithm>
#include <climits>
#include <new>
#include <system_error>
#include <utility>

#include "engine/deliver/pull.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/join_deadline.hpp"

namespace ringmain::engine {

OwnThread::OwnThread(Ref<ChannelCore> core, std::string name)
    : core_(std::move(core)),
      name_(std::move(name)),
      wait_(core_->host().own_threads().options().wait) {}

OwnThread::~OwnThread() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // the thread itself was the last to hold it, and is about to end
  } else {
    thread_.join();
  }
}

void OwnThread::start() {
  OwnThreads& all = core_->host().own_threads();
  all.add(*this);
  hold();  // the thread's own
  try {
    const BlockedSignals blocked;
    const std::lock_guard lock(joining_);  // a stop() that found it on the list may join it already
    thread_ = std::thread([this, &all] {
      configure_thread(all.options(), name_.c_str());
      run();
    });
  } catch (const std::system_error& e) {
    never_started();
    throw std::system_error(
        e.code(), "ringmain: the system gave subscriber '" + name_ +
                      "' no thread of its own; raise the process limit (ulimit -u), or use "
                      "Served::isolated");
  } catch (const std::bad_alloc&) {
    never_started();
    throw;
  }
}

void OwnThread::never_started() noexcept {
  core_->host().own_threads().forget(*this);
  gone_.store(1, std::memory_order_release);  // q.over
  futex_wake(gone_, INT_MAX);
  release();
}

void OwnThread::end() noexcept {
  ending_.store(1, std::memory_order_release);  // q.over
  tell_reader(core_->pull);
}

bool OwnThread::join(std::int64_t limit_ns) noexcept {
  const Deadline deadline(limit_ns);
  {
    const std::lock_guard lock(joining_);
    if (thread_.get_id() == std::this_thread::get_id()) return true;
  }
  while (gone_.load(std::memory_order_acquire) == 0) {  // q.over
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return false;
    futex_wait(gone_, 0, left);
  }
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.join();
  return true;
}

void OwnThread::leave_alone() noexcept {
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.detach();
}

/// True once no new event can come. A drain after this call finds all that came before.
bool OwnThread::over() const noexcept {
  if (core_->host().stopped()) return true;
  return ending_.load(std::memory_order_acquire) != 0 && !core_->fed();  // q.over
}

void OwnThread::run() noexcept {
  enum : std::size_t { kQuantum = 256 };
  core_->line.leased.store(1, std::memory_order_release);  // e.leased: awake
  glances.most = Glances::kMost;
  for (;;) {
    const bool last = over();
    const std::size_t served = drain(*this, *core_, kQuantum);
    if (forked()) return;  // a callback forked and came back: nothing here is this process's
    if (served != 0) {
      wait_.worked(served, take_least_room(), glances.take_made());
    } else if (last && !core_->anything_left()) {
      break;
    } else if (!wait_.look_again(glances.take_made())) {
      sleep();
    }
  }
  rest();
  core_->host().own_threads().forget(*this);
  gone_.store(1, std::memory_order_release);  // q.over
  futex_wake(gone_, INT_MAX);
  release();
}

void OwnThread::before_callbacks(ChannelCore&) noexcept {
  if (!std::exchange(awake_, true)) core_->host().own_threads().is_awake();
}

void OwnThread::rest() noexcept {
  reading.store(nullptr, std::memory_order_release);  // n.unread
  if (std::exchange(awake_, false)) core_->host().own_threads().is_asleep();
}

void OwnThread::sleep() noexcept {
  rest();
  const std::uint32_t key = prepare_wait(*core_);
  if (!core_->anything_left() && !over()) futex_wait(core_->pull.key, key);
  core_->line.leased.store(1, std::memory_order_release);  // e.leased: awake again
}

// --- all of them ---

void OwnThreads::add(OwnThread& own) {
  drainers_.watch(own);
  try {
    const std::lock_guard lock(mutex_);
    all_.push_back(&own);
  } catch (const std::bad_alloc&) {
    drainers_.unwatch(own);
    throw;
  }
}

void OwnThreads::forget(OwnThread& own) noexcept {
  drainers_.unwatch(own);
  strike(own);
}

void OwnThreads::strike(OwnThread& own) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &own);
}

void OwnThreads::is_awake() noexcept {
  awake_.fetch_add(1, std::memory_order_seq_cst);  // h.awake
  inbox_.event_count().notify_busy();
}

void OwnThreads::join(std::int64_t limit_ns, std::vector<std::string>& stuck) noexcept {
  const JoinDeadline join_deadline(limit_ns);
  for (;;) {
    Ref<OwnThread> own;
    {
      const std::lock_guard lock(mutex_);
      if (all_.empty()) return;
      own = all_.front();
    }
    const auto calls = [&] {
      return own->calling.load(std::memory_order_relaxed) != 0;  // relaxed: a look
    };
    bool joined = false;
    for (std::int64_t left = -1; !joined && left != 0;) {
      left = join_deadline.left_ns(calls());
      joined = own->join(left);
    }
    if (!joined) {
      try {
        if (calls()) stuck.push_back(own->name());
      } catch (const std::bad_alloc&) {
        // It goes unnamed.
      }
      own->leave_alone();
    }
    // Nobody waits for it a second time, but one that is in a callback is still looked at.
    joined ? forget(*own) : strike(*own);
  }
}

}  // namespace ringmain::engine
