#include "bindings/python/native/dispatcher.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "engine/subscribe/subscriber.hpp"

#include "bindings/python/native/batch.hpp"
#include "bindings/python/native/inline_subscribe.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

enum : std::uint64_t { kWake = 0 };
enum : std::size_t { kBatchMax = 2048, kFewEvents = 256 };

[[noreturn]] void no_descriptor() {
  throw std::system_error(errno, std::generic_category(),
                          "the system gave no descriptor for a subscriber; raise the limit (ulimit "
                          "-n), or subscribe less");
}

void watch(int epoll, int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (fd < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) no_descriptor();
}

/// The batch as a Python object, or nullptr with a Python error set.
PyObject* python_batch(Room room, const engine::Run& run) noexcept {
  try {
    return nb::cast(Batch(std::move(room), run), nb::rv_policy::move).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

}  // namespace

Dispatcher::Dispatcher()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0) no_descriptor();
  watch(epoll_, wake_, kWake);
}

Dispatcher::~Dispatcher() {
  ::close(epoll_);
  ::close(wake_);
}

void Dispatcher::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

std::shared_ptr<QueuedSubscriber> Dispatcher::add(ringmain::detail::PullMailbox* box,
                                                  nb::object callback, std::string name,
                                                  bool detach_on_raise) {
  struct Closing {
    ringmain::detail::PullMailbox* box;
    ~Closing() { ringmain::detail::close_mailbox(box); }
  } unless_added{box};
  auto made = std::make_shared<QueuedSubscriber>();
  made->name = std::move(name);
  made->detach_on_raise = detach_on_raise;
  made->fd = ringmain::detail::mailbox_fd(*box);
  const Lock lock(mutex_);
  made->id = next_id_++;
  subscribers_.push_back(made);
  try {
    watch(epoll_, made->fd, made->id);
  } catch (...) {
    subscribers_.pop_back();
    throw;
  }
  made->box = std::exchange(unless_added.box, nullptr);
  made->callback = callback.release().ptr();
  return made;
}

ringmain::detail::PullMailbox* Dispatcher::take_out(QueuedSubscriber& subscriber) {
  std::erase_if(subscribers_, [&subscriber](const auto& h) { return h.get() == &subscriber; });
  if (subscriber.box == nullptr) return nullptr;
  subscriber.last = ringmain::detail::mailbox_stats(*subscriber.box);
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, subscriber.fd, nullptr);
  return std::exchange(subscriber.box, nullptr);
}

Detached Dispatcher::remove(QueuedSubscriber& subscriber, Seconds limit) {
  if (forked()) return Detached::was_not_attached;
  bool was_closed = false;
  {
    const Lock lock(mutex_);
    was_closed = subscriber.closed.exchange(true);
    if (was_closed && !subscriber.busy && subscriber.box == nullptr)
      return Detached::was_not_attached;
    if (subscriber.busy && engine::in_callback()) return Detached::deferred;
  }
  const bool quiet = wait_in_slices(limit, [&](std::chrono::nanoseconds slice) {
    ringmain::detail::PullMailbox* box = nullptr;
    PyObject* callback = nullptr;
    {
      Lock lock(mutex_);
      if (!changed_.wait_for(lock, slice, [&] { return !subscriber.busy; })) return false;
      box = take_out(subscriber);
      callback = std::exchange(subscriber.callback, nullptr);
    }
    ringmain::detail::close_mailbox(box);
    retire(callback);
    return true;
  });
  return quiet ? Detached::done : Detached::timeout;
}

SubscriberStats Dispatcher::stats(const QueuedSubscriber& subscriber) const {
  if (forked()) return subscriber.last;
  const Lock lock(mutex_);
  return subscriber.box == nullptr ? subscriber.last
                                   : ringmain::detail::mailbox_stats(*subscriber.box);
}

bool Dispatcher::wait_until_called(Seconds limit) {
  if (forked() || engine::in_callback()) return false;
  struct Mark {
    std::shared_ptr<QueuedSubscriber> subscriber;
    std::vector<std::uint64_t> lanes;
  };
  std::vector<Mark> marks;
  {
    const Lock lock(mutex_);
    for (const auto& h : subscribers_) {
      if (!h->closed) {
        marks.push_back({h, ringmain::detail::mailbox_marks(*h->box)});
      } else if (h->busy) {
        marks.push_back({h, {}});
      }
    }
  }
  const auto heard = [this, &marks] {
    if (stopping_) return true;
    for (const Mark& m : marks) {
      // A subscriber that was removed meanwhile hears no more; its callback may still be running.
      if (m.subscriber->closed ? m.subscriber->busy
                               : !ringmain::detail::mailbox_reached(*m.subscriber->box, m.lanes))
        return false;
    }
    return true;
  };
  return wait_in_slices(limit, [&](std::chrono::nanoseconds slice) {
    Lock lock(mutex_);
    ++waiters_;
    wake();  // the thread does not linger while somebody waits
    const bool done = changed_.wait_for(lock, slice, heard);
    --waiters_;
    return done;
  });
}

bool Dispatcher::stop(Seconds limit) {
  if (forked()) return true;
  std::vector<std::shared_ptr<QueuedSubscriber>> left;
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake();
  changed_.notify_all();
  if (engine::in_callback()) return false;
  const bool ended = wait_in_slices(limit, [&](std::chrono::nanoseconds slice) {
    Lock lock(mutex_);
    if (!changed_.wait_for(lock, slice, [this] { return !running_; })) return false;
    left = subscribers_;
    return true;
  });
  for (const auto& h : left) (void)remove(*h, Seconds(0.0));
  reclaim_retired();
  return ended;
}

void Dispatcher::forget() noexcept {
  for (const auto& h : subscribers_) Py_CLEAR(h->callback);
}

// --- the thread ---

std::shared_ptr<QueuedSubscriber> Dispatcher::begin_turn(std::uint64_t id) {
  const Lock lock(mutex_);
  for (const auto& h : subscribers_) {
    if (h->id != id || h->closed || stopping_) continue;
    h->busy = true;
    return h;
  }
  return nullptr;
}

void Dispatcher::end_turn(const std::shared_ptr<QueuedSubscriber>& subscriber) {
  ringmain::detail::PullMailbox* box = nullptr;
  {
    const Lock lock(mutex_);
    if (subscriber->closed) {  // meanwhile; the waiting thread finds it done, and reclaims
      box = take_out(*subscriber);
      retire(std::exchange(subscriber->callback, nullptr));
    }
    subscriber->busy = false;
  }
  changed_.notify_all();
  ringmain::detail::close_mailbox(box);
}

void Dispatcher::raised(QueuedSubscriber& subscriber) {
  ++counts.raised;
  if (subscriber.raised++ == 0) {
    log_raised(subscriber.name);
  } else {
    PyErr_Clear();
  }
  if (!subscriber.detach_on_raise) return;
  const Lock lock(mutex_);
  subscriber.closed = true;
}

void Dispatcher::call(QueuedSubscriber& subscriber, PyObject* batch) {
  // Plain calls, and nothing on this frame that a thread's forced end would have to destroy.
  PyObject* answer = batch == nullptr ? nullptr : call_with(subscriber.callback, batch);
  Py_XDECREF(batch);
  if (answer == nullptr) return raised(subscriber);
  Py_DECREF(answer);
}

std::size_t Dispatcher::serve(std::uint64_t id, PyThreadState*& saved) {
  const std::shared_ptr<QueuedSubscriber> subscriber = begin_turn(id);
  if (subscriber == nullptr) return 0;
  Room room;
  engine::Run run;
  if (ringmain::detail::take_run_of(*subscriber->box, &Room::make, &room, kBatchMax, run)) {
    const engine::CallbackScope in_a_callback;  // nothing that it calls may wait for it
    PyEval_RestoreThread(saved);
    ++counts.gil_taken;
    call(*subscriber, python_batch(std::move(room), run));
    reclaim_retired();
    saved = PyEval_SaveThread();
    ++counts.batches;
    counts.events += run.count;
    ++subscriber->batches;
    subscriber->events += run.count;
    ringmain::detail::finish_run_of(*subscriber->box);
  }
  end_turn(subscriber);
  return run.count;
}

void Dispatcher::linger() noexcept {
  {
    const Lock lock(mutex_);
    if (waiters_ > 0 || stopping_) return;
  }
  const std::int64_t ns = linger_ns;
  if (ns <= 0) return;
  timespec limit{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  pollfd woken{wake_, POLLIN, 0};
  (void)::ppoll(&woken, 1, &limit, nullptr);  // a thread that begins to wait wakes it
}

void Dispatcher::run() {
  {
    const Lock lock(mutex_);
    running_ = true;
  }
  PyThreadState* saved = PyEval_SaveThread();
  std::array<epoll_event, 64> ready{};
  for (bool more = true; more;) {
    const int n = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
    std::size_t found = 0;
    for (int i = 0; i < n; ++i) {
      const std::uint64_t id = ready[static_cast<std::size_t>(i)].data.u64;
      std::uint64_t rung = 0;
      if (id != kWake) {
        found += serve(id, saved);
      } else {
        (void)!::read(wake_, &rung, sizeof rung);
      }
    }
    if (found > 0 && found < kFewEvents) linger();
    const Lock lock(mutex_);
    more = !stopping_;
  }
  PyEval_RestoreThread(saved);
  {
    const Lock lock(mutex_);
    running_ = false;
  }
  changed_.notify_all();
}

}  // namespace ringmain::python
