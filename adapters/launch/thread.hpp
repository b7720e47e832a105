// Which thread acts for ringmain in a program that does not know it? One that has a table of
// descriptors of its own.
//
// On Linux a thread can have its own table. Files that this thread opens, and the threads that it
// starts, are in a table that the program cannot see: it closes none of them, takes none of their
// numbers and inherits none. In turn no file of the program stays open here but standard error.
// Where the system refuses a table (before Linux 5.9, some seccomp filters), files and standard
// error have high numbers, and are looked at before each write.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "bus/options.hpp"

namespace ringmain::run {

class RunThread {
 public:
  enum Errand : std::uint32_t { kNothing = 0, kFlush = 1, kFinish = 2, kAwaitSolitude = 4 };
  struct Work {
    std::function<void()> open;  // first of all
    std::function<void(Errand, nanoseconds limit)>
        errand;                    // one that does not end by its deadline is left alone
    bool standard_output = false;  // a sink writes to it
  };

  /// Starts the thread and waits until its `open` has returned, or for `limit`. Where the system
  /// gives no thread, `open` and all errands run in the caller. Never destroyed.
  static RunThread& start(Work work, nanoseconds limit);

  /// Has the thread do the errand, and waits until that and all earlier ones are done, or for
  /// `limit`. Async-signal-safe where there is a thread.
  void ask(Errand errand, nanoseconds limit) noexcept;
  /// In a thread of ringmain, after the main thread has ended: waits until all other threads of the
  /// program have ended. Returns the status that the process ends with.
  int await_solitude() noexcept;
  /// One line on the standard error that the process began with, if there is memory for it. Does
  /// not wait.
  void say(std::string sentence) noexcept;

 private:
  explicit RunThread(Work work) : work_(std::move(work)) {}
  void run() noexcept;
  void open() noexcept;
  void do_errand(Errand errand, nanoseconds limit) noexcept;
  void say_what_is_waiting() noexcept;
  void start_awaiting_solitude() noexcept;

  const Work work_;
  bool alone_ = false;  // there is no thread
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<std::uint32_t> notified_{0};  // moves with each request
  std::atomic<std::uint32_t> asks_{1};      // how often it was asked; the opening is the first
  std::atomic<std::uint32_t> done_{0};      // up to which of these all is done; 0 while it opens
  std::atomic<std::int64_t> limit_ns_{0};
  int threads_ = -1;                        // the folder of the process's threads, in its own table
  std::atomic<std::uint32_t> solitary_{0};  // 1 + the process's status
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

/// The run's thread of this process; nullptr until it has opened.
extern std::atomic<RunThread*> the_thread;
/// Has the thread write "ringmain: ", the sentence and a line end; before it has opened, the caller
/// writes it.
void tell(std::string sentence);

/// Makes Bus::process() in a thread with a name of ringmain's, which the bus's threads inherit: so
/// a look at the program's threads can tell them apart from the start.
void start_bus();

}  // namespace ringmain::run
