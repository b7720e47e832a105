// Which thread calls Python back? One for each bus, which takes the GIL once for each batch.
//
//   channel ── feeder ──► mailbox ──► this thread ── GIL ──► callback(batch)
//
// Workers copy events into mailboxes and never see the GIL. The thread sleeps on the mailboxes'
// descriptors, and lingers between two turns, unless somebody waits for what it has. It is made by
// Python's threading, so that debuggers and threading.local know it. The interpreter's exit ends it
// while it may still ask for the GIL.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/mailbox.hpp"

#include "bindings/python/native/gil.hpp"

namespace ringmain::python {

/// One callback and its mailbox.
struct QueuedSubscriber {
  ringmain::detail::PullMailbox* box = nullptr;  // nullptr: closed
  PyObject* callback = nullptr;                  // dropped with the GIL
  std::string name;
  bool detach_on_raise = false;
  std::uint64_t id = 0;
  int fd = -1;
  // Written under the dispatcher's lock:
  std::atomic<bool> closed{false};
  bool busy = false;
  // Counted by the dispatcher's thread:
  std::atomic<std::uint64_t> batches{0}, events{0}, raised{0};
  SubscriberStats last{};  // once it is closed
};

struct DispatcherCounts {
  std::atomic<std::uint64_t> batches{0}, events{0}, raised{0};
  std::atomic<std::uint64_t> gil_taken{0};  // by this thread, to call back
};

class Dispatcher : public engine::Born, public std::enable_shared_from_this<Dispatcher> {
 public:
  /// Throws std::system_error: no descriptor.
  Dispatcher();
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Takes `box` over. Throws std::system_error (no descriptor), std::bad_alloc. With the GIL.
  std::shared_ptr<QueuedSubscriber> add(ringmain::detail::PullMailbox* box, nb::object callback,
                                        std::string name, bool detach_on_raise);
  /// After done is returned no call to `subscriber` is running or will start. Inside a callback it
  /// returns deferred and does not wait. With the GIL, which is given up while it waits.
  Detached remove(QueuedSubscriber& subscriber, Seconds limit);
  [[nodiscard]] SubscriberStats stats(const QueuedSubscriber& subscriber) const;
  /// Waits until all that lay in the mailboxes at the call was heard. With the GIL, given up
  /// meanwhile.
  bool wait_until_called(Seconds limit);
  /// Ends the thread after the callback that is running, and removes all. False: it did not end.
  bool stop(Seconds limit);

  /// The thread's body. Called with the GIL, which it holds only during callbacks. Not noexcept: a
  /// thread that is stuck at the interpreter's end is ended by unwinding it.
  void run();
  [[nodiscard]] bool started() const noexcept { return started_; }
  void set_started() noexcept { started_ = true; }
  /// In a forked child: drops the callbacks, waits for nothing.
  void forget() noexcept;

  DispatcherCounts counts;
  /// For how long the thread leaves the mailboxes alone after a turn that found few events, so that
  /// events that come one by one are heard together. The first after a rest is heard at once.
  std::atomic<std::int64_t> linger_ns{0};

 private:
  using Lock = std::unique_lock<engine::ForkMutex>;
  std::shared_ptr<QueuedSubscriber> begin_turn(std::uint64_t id);
  void end_turn(const std::shared_ptr<QueuedSubscriber>& subscriber);
  /// Returns how many events it found.
  std::size_t serve(std::uint64_t id, PyThreadState*& saved);
  void linger() noexcept;
  void call(QueuedSubscriber& subscriber, PyObject* batch);
  void raised(QueuedSubscriber& subscriber);
  void wake() const noexcept;
  /// Takes it off the list; its mailbox is the caller's to close, without the lock.
  ringmain::detail::PullMailbox* take_out(QueuedSubscriber& subscriber);

  mutable engine::ForkMutex mutex_{0};  // before any lock of the bus
  std::condition_variable_any changed_;
  std::vector<std::shared_ptr<QueuedSubscriber>> subscribers_;
  std::uint64_t next_id_ = 1;
  int epoll_ = -1;
  int wake_ = -1;
  int waiters_ = 0;
  bool stopping_ = false;
  bool running_ = false;
  bool started_ = false;
};

}  // namespace ringmain::python
