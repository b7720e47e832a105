#include "adapters/launch/thread.hpp"

#include <exception>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/own_descriptors.hpp"

#include "bus/bus.hpp"

#include "adapters/launch/await_change.hpp"
#include "adapters/launch/solitude.hpp"
#include "adapters/launch/standard_error.hpp"

namespace ringmain::run {
namespace {

/// True in the run's thread itself. Read in signal handlers, so it must not be made by a call.
[[gnu::tls_model("initial-exec")]] thread_local bool is_run_thread = false;

/// Gives this thread a table of descriptors of its own, which has none of the program's but
/// standard error and, if asked for, standard output. False: the system refuses.
bool take_own_table(bool standard_output) noexcept {
  if (!engine::take_own_descriptors(3)) return false;
  // No file may get a number below 3, or printed text would land in it.
  (void)::close(STDIN_FILENO);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return true;
  if (!standard_output || ::fcntl(STDOUT_FILENO, F_GETFD) < 0)
    (void)::dup3(nothing, STDOUT_FILENO, O_CLOEXEC);
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0 || !is_standard_error(STDERR_FILENO))
    (void)::dup3(nothing, STDERR_FILENO, O_CLOEXEC);
  return true;
}

}  // namespace

constinit std::atomic<RunThread*> the_thread{nullptr};

void start_bus() {
  class Named {
   public:
    Named() noexcept {
      (void)::prctl(PR_GET_NAME, before_);
      (void)::prctl(PR_SET_NAME, "ringmain:start");
    }
    ~Named() { (void)::prctl(PR_SET_NAME, before_); }
    Named(const Named&) = delete;
    Named& operator=(const Named&) = delete;

   private:
    char before_[16] = "";
  } const named;
  (void)Bus::process();
}

RunThread& RunThread::start(Work work, nanoseconds limit) {
  auto* const made = new RunThread(std::move(work));
  remember_standard_error();
  try {
    const engine::BlockedSignals blocked;  // they are the program's
    std::thread([made] { made->run(); }).detach();
    await_change(made->done_, 0, engine::now_ns() + limit.count());
  } catch (const std::system_error&) {
    made->alone_ = true;
    keep_one_more_standard_error();
    made->open();
  }
  return *made;
}

void RunThread::open() noexcept {
  try {
    work_.open();
  } catch (const std::exception& failed) {
    tell_unheard(failed.what());
  }
}

void RunThread::do_errand(Errand errand, nanoseconds limit) noexcept {
  try {
    work_.errand(errand, limit);
  } catch (const std::exception&) {
    write_sentence("ringmain: there was no memory to end sources and sinks\n");
  }
}

void RunThread::run() noexcept {
  is_run_thread = true;
  ::pthread_setname_np(::pthread_self(), "ringmain:run");
  if (take_own_table(work_.standard_output)) {
    threads_ = open_threads();
  } else {
    keep_one_more_standard_error();
  }
  open();
  done_ = 1;
  wake_all(done_);
  for (;;) {
    const std::uint32_t notified = notified_;
    say_what_is_waiting();
    const std::uint32_t asks = asks_;
    if (done_ == asks) {
      await_change(notified_, notified, INT64_MAX);
      continue;
    }
    const std::uint32_t errand = asked_.exchange(0);
    if ((errand & kAwaitSolitude) != 0) start_awaiting_solitude();
    if ((errand & (kFinish | kFlush)) != 0)
      do_errand((errand & kFinish) != 0 ? kFinish : kFlush, nanoseconds(limit_ns_.load()));
    say_what_is_waiting();
    done_ = asks;
    wake_all(done_);
  }
}

void RunThread::ask(Errand errand, nanoseconds limit) noexcept {
  if (alone_ || is_run_thread) {
    if (errand != kNothing) do_errand(errand, limit);
    return;
  }
  const std::int64_t until = engine::now_ns() + limit.count();
  limit_ns_ = limit.count();
  asked_ |= errand;
  const std::uint32_t mine = ++asks_;
  ++notified_;
  wake_all(notified_);
  for (std::uint32_t done = done_; static_cast<std::int32_t>(done - mine) < 0; done = done_) {
    await_change(done_, done, until);
    if (engine::now_ns() >= until) return;
  }
}

int RunThread::await_solitude() noexcept {
  if (alone_) return await_solitude_in(open_threads());
  asked_ |= kAwaitSolitude;
  ++asks_;
  ++notified_;
  wake_all(notified_);
  await_change(solitary_, 0, INT64_MAX);
  return static_cast<int>(solitary_ - 1);
}

/// Runs in a thread with a table of its own: the program may have no descriptor left, or no /proc.
void RunThread::start_awaiting_solitude() noexcept {
  const auto await = [this] {
    (void)::pthread_setname_np(::pthread_self(), "ringmain:alone");
    // Two numbers below any limit that the program may have set.
    if (::unshare(CLONE_FILES) == 0) {
      (void)::close(STDIN_FILENO);
      (void)::close(STDOUT_FILENO);
    }
    const int threads = threads_ >= 0 ? threads_ : open_threads();
    solitary_ = 1 + static_cast<std::uint32_t>(await_solitude_in(threads));
    wake_all(solitary_);
  };
  try {
    std::thread(await).detach();
  } catch (const std::system_error&) {
    await();
  }
}

void RunThread::say(std::string sentence) noexcept {
  try {
    sentence = "ringmain: " + sentence + "\n";
    if (alone_ || is_run_thread) return write_sentence(sentence);
    const std::lock_guard lock(mutex_);
    sentences_.push_back(std::move(sentence));
  } catch (const std::exception&) {
    return;
  }
  ++notified_;
  wake_all(notified_);
}

void RunThread::say_what_is_waiting() noexcept {
  std::vector<std::string> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(sentences_);
  }
  for (const std::string& sentence : waiting) write_sentence(sentence);
}

void tell(std::string sentence) {
  if (RunThread* const thread = the_thread) return thread->say(std::move(sentence));
  write_sentence("ringmain: " + sentence + "\n");
}

}  // namespace ringmain::run
