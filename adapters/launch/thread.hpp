// Who acts for ringmain in a program that does not know it? One thread, which has a table of
// descriptors of its own.
//
// Linux gives each thread the table that it asks for. Files that are opened from this thread, and
// from those that it starts, are in a table that the program cannot see: it closes none of them,
// takes none of their numbers and inherits none. The other way round nothing of the program's stays
// open here but standard error. Where the system refuses a table (before Linux 5.9, some seccomp
// filters), files and standard error have high numbers, and are looked at before each write.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bus/options.hpp"

namespace ringmain::run {

class RunThread {
 public:
  enum Errand : std::uint32_t { kNothing = 0, kFlush = 1, kFinish = 2, kAwaitSolitude = 4 };
  struct Work {
    std::function<void()> open;  // first of all
    std::function<void(Errand, nanoseconds limit)>
        errand;                    // what does not end by then is left alone
    bool standard_output = false;  // a sink writes to it
  };

  /// Starts it, and waits until it has opened what it opens, or for `limit`. Where the system has
  /// no thread: does that here, and all errands too. Never destroyed.
  static RunThread& start(Work work, nanoseconds limit);

  /// Waits until it and all that was asked before is done, or for `limit`. Async-signal-safe where
  /// there is a thread.
  void ask(Errand errand, nanoseconds limit) noexcept;
  /// In a thread of ours, after the main thread has left: waits until all others of the program
  /// have. Returns the status that the process has.
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
  std::atomic<std::uint32_t> notified_{0};  // moves with each wish
  std::atomic<std::uint32_t> asks_{1};      // how often it was asked; the opening is the first
  std::atomic<std::uint32_t> done_{0};      // up to which of these all is done; 0 while it opens
  std::atomic<std::int64_t> limit_ns_{0};
  int threads_ = -1;                        // the folder of the process's threads, in its own table
  std::atomic<std::uint32_t> solitary_{0};  // 1 + the process's status
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

/// The one of this process; nobody while it opens.
extern std::atomic<RunThread*> the_thread;
/// Has it say "ringmain: ", the sentence and the line's end; says that here while it opens.
void tell(std::string sentence);

/// From now on sentences go to what is standard error now, or nowhere. The first call holds.
void remember_standard_error() noexcept;
/// Makes Bus::process(), from a thread with a name of ours, which the bus's threads have from
/// birth: whoever asks which threads are the program's finds none of them among those.
void start_bus();
/// Waits while `word` is `value`, at most until `until_ns` of CLOCK_MONOTONIC. Async-signal-safe.
void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::int64_t until_ns) noexcept;
void wake_all(std::atomic<std::uint32_t>& word) noexcept;
/// One write to the standard error that the process began with, if it is still open; raises no
/// SIGPIPE in the caller.
void write_sentence(std::string_view sentence) noexcept;
/// That nothing is heard from this program, and why. Allocates nothing.
void tell_unheard(const char* why) noexcept;

}  // namespace ringmain::run
