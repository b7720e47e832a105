// How can a subscriber block for as long as it likes without harm to others? It has a mailbox and a
// thread of its own.
//
// The thread alone drains that mailbox: it drains as a worker does and sleeps as a reader does
// (pull.hpp), so there is no new protocol here. It ends when its subscription is over and the last
// feeder is gone, or when the bus has stopped. Before that it takes what is left in the mailbox; a
// closed gate counts it as skipped.
//
// The thread holds all that it touches. reset() outside callbacks and stop() join it. Where neither
// is called (reset() in its own callback, then the handle is dropped) it ends by itself.
#pragma once
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../channel/channel_core.hpp"
#include "../system/wait_strategy.hpp"
#include "../system/workers_options.hpp"
#include "drainers.hpp"

namespace ringmain::engine {

class OwnThread;

/// The own threads of one bus that have started and not ended. Threads: any.
class OwnThreads {
 public:
  /// All of them outlive it.
  OwnThreads(const WorkersOptions& options, Drainers& drainers, HouseInbox& inbox) noexcept
      : options_(options), drainers_(drainers), inbox_(inbox) {}
  OwnThreads(const OwnThreads&) = delete;
  OwnThreads& operator=(const OwnThreads&) = delete;

  [[nodiscard]] const WorkersOptions& options() const noexcept { return options_; }
  /// Throws std::bad_alloc.
  void add(OwnThread& own);
  void forget(OwnThread& own) noexcept;
  void is_awake() noexcept;
  void is_asleep() noexcept { awake_.fetch_sub(1, std::memory_order_seq_cst); }  // h.awake
  [[nodiscard]] bool anybody_awake() const noexcept {
    return awake_.load(std::memory_order_seq_cst) != 0;  // h.awake
  }
  /// Call it once the bus has stopped, which ends them. A thread that has not ended by `limit_ns`
  /// is left alone; if it is in a callback, its name is added to `stuck`. It holds all that it
  /// touches.
  void join(std::int64_t limit_ns, std::vector<std::string>& stuck) noexcept;

 private:
  /// As forget(), for one that may be in a callback: a reset() must still find its call.
  void strike(OwnThread& own) noexcept;

  const WorkersOptions& options_;
  Drainers& drainers_;
  HouseInbox& inbox_;
  std::mutex mutex_;
  std::vector<OwnThread*> all_;  // each holds itself while it is here
  Atomic<std::uint32_t> awake_{0};
};

class OwnThread final : public Counted, public Drainer {
 public:
  /// `core` was made with ChannelCoreOptions::own_thread and has its subscriber.
  OwnThread(Ref<ChannelCore> core, std::string name);
  ~OwnThread() override;

  /// Starts the thread with all signals blocked, and with the workers' niceness and CPUs. Throws
  /// std::system_error where the system gives no thread, and std::bad_alloc; nothing is left of it
  /// then.
  void start();
  /// Says that the subscription is over: the thread ends once its feeders are gone. Does not wait.
  void end() noexcept;
  /// After end(), or once the bus has stopped: waits until the thread has ended, at most `limit_ns`
  /// (negative: for ever). In the thread itself, which cannot wait for its own end, true at once.
  [[nodiscard]] bool join(std::int64_t limit_ns) noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// For a thread that did not end in time: it is not waited for again.
  void leave_alone() noexcept;

 private:
  void before_callbacks(ChannelCore& channel) noexcept override;
  void never_started() noexcept;
  void run() noexcept;
  void sleep() noexcept;
  void rest() noexcept;
  [[nodiscard]] bool over() const noexcept;

  const Ref<ChannelCore> core_;
  const std::string name_;
  WaitStrategy wait_;
  bool awake_ = false;  // as the housekeeper was told; it looks more often then
  Atomic<std::uint32_t> ending_{0};
  Atomic<std::uint32_t> gone_{0};
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace ringmain::engine
