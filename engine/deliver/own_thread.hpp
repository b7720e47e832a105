// How does a subscriber that may block for as long as it likes harm nobody? It has a mailbox and a
// thread of its own.
//
// The thread is its mailbox's only drainer: it drains as a worker does and sleeps as a reader does
// (pull.hpp), so nothing here is a new protocol. It ends when its subscription is over and the last
// feeder is gone, or when the bus has stopped; after all that is in the mailbox, which a closed
// gate turns into "skipped".
//
// It holds all that it touches. reset() outside callbacks and stop() join it; where neither comes
// (reset() in its own callback, and the handle dropped) it ends by itself.
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

/// Those of one bus, between their start and their end. Threads: any.
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
  /// Once the bus has stopped: they see it. One that does not end by then is left alone, and its
  /// name comes into `stuck` if it is in a callback; it holds all that it touches.
  void join(std::int64_t limit_ns, std::vector<std::string>& stuck) noexcept;

 private:
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

  /// Starts it, with all signals blocked, and niceness and CPUs as the workers'. Throws
  /// std::system_error where the system gives no thread, std::bad_alloc; then nothing is left of
  /// it.
  void start();
  /// The subscription is over: it is to end once its feeders are gone. Waits for nobody.
  void end() noexcept;
  /// Behind end(), or once the bus has stopped: waits until it has ended, at most `limit_ns`
  /// (negative: for ever). True at once in the thread itself, which cannot wait for its own end.
  [[nodiscard]] bool join(std::int64_t limit_ns) noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// It did not end in time: nobody will wait for it any more.
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
  bool awake_ = false;  // as the housekeeper sees it, which looks more often then
  Atomic<std::uint32_t> ending_{0};
  Atomic<std::uint32_t> gone_{0};
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace ringmain::engine
