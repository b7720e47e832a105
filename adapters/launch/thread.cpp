#include "adapters/launch/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <exception>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"

#include "bus/bus.hpp"

#include "adapters/formats/high_descriptor.hpp"
#include "adapters/launch/say.hpp"

namespace ringmain::run {
namespace {

constexpr unsigned kUnshare = 2;  // CLOSE_RANGE_UNSHARE
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr char kThreads[] = "/proc/self/task";

/// True in the run's thread itself. Read in signal handlers, so it must not be made by a call.
[[gnu::tls_model("initial-exec")]] thread_local bool is_run_thread = false;

/// The standard error with which the process began. It remembers the file, since a program may open
/// another one at that number. Set before the thread starts, and then by the thread only.
class StandardError {
 public:
  void remember() noexcept {
    if (remembered_) return;
    struct stat now {};
    remembered_ = true;
    there_ = ::fstat(STDERR_FILENO, &now) == 0;
    device_ = now.st_dev;
    inode_ = now.st_ino;
  }
  /// False where another file has that number now.
  [[nodiscard]] bool holds(int fd) const noexcept { return !remembered_ || is(fd); }
  /// For a thread that shares the program's descriptors: keeps a second one, at a number that
  /// programs seldom close.
  void keep_one_more() noexcept {
    if (is(STDERR_FILENO)) high_ = formats::duplicate_high(STDERR_FILENO);
  }
  /// A descriptor that is that file now; -1: there is none.
  [[nodiscard]] int number() const noexcept {
    if (high_ >= 0 && is(high_)) return high_;
    return !remembered_ || is(STDERR_FILENO) ? STDERR_FILENO : -1;
  }

 private:
  [[nodiscard]] bool is(int fd) const noexcept {
    struct stat now {};
    return there_ && ::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  }

  bool remembered_ = false;
  bool there_ = false;
  int high_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};
constinit StandardError standard_error;

/// Gives this thread a table of descriptors of its own, which has none of the program's but
/// standard error and, if asked for, standard output. False: the system refuses.
bool take_own_table(bool standard_output) noexcept {
  if (::syscall(SYS_close_range, 3u, ~0u, kUnshare) != 0) {
    if (::unshare(CLONE_FILES) != 0) return false;
    const long end = ::sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < end && fd < 65536; ++fd) (void)::close(fd);
  }
  // No file may get a number below 3, or printed text would land in it.
  (void)::close(STDIN_FILENO);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return true;
  if (!standard_output || ::fcntl(STDOUT_FILENO, F_GETFD) < 0)
    (void)::dup3(nothing, STDOUT_FILENO, O_CLOEXEC);
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0 || !standard_error.holds(STDERR_FILENO))
    (void)::dup3(nothing, STDERR_FILENO, O_CLOEXEC);
  return true;
}

}  // namespace

constinit std::atomic<RunThread*> the_thread{nullptr};

void remember_standard_error() noexcept {
  standard_error.remember();
}

void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::int64_t until_ns) noexcept {
  const int saved = errno;
  while (word == value && engine::now_ns() < until_ns) {
    const timespec until{until_ns / kSecond, until_ns % kSecond};
    // WAIT_BITSET takes a time, not a duration.
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, &until, nullptr,
              FUTEX_BITSET_MATCH_ANY);
  }
  errno = saved;
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  const int saved = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

void write_sentence(std::string_view sentence) noexcept {
  const iovec line{const_cast<char*>(sentence.data()), sentence.size()};
  write_unnoticed(standard_error.number(), &line, 1);
}

void tell_unheard(const char* why) noexcept {
  char line[256];
  const int bytes = std::snprintf(line, sizeof line, "ringmain: nothing is heard from %s: %s\n",
                                  ::program_invocation_short_name, why);
  write_sentence({line, std::min(sizeof line - 1, static_cast<std::size_t>(bytes))});
}

namespace {

/// "12/comm" of a thread, cut to the room for it.
std::size_t read_about(int threads, const char* thread, const char* what, char* to,
                       std::size_t room) noexcept {
  char path[64];
  (void)std::snprintf(path, sizeof path, "%s/%s", thread, what);
  const int fd = ::openat(threads, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = ::read(fd, to, room - 1);  // ESRCH: it has ended meanwhile
  (void)::close(fd);
  to[std::max<ssize_t>(bytes, 0)] = 0;
  return static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
}

/// Are other threads in `threads`, a descriptor of /proc/self/task? True also if that cannot be
/// told, because ending the process would end them.
bool others_are_there(int threads) noexcept {
  const int mine = ::openat(threads, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const folder = mine < 0 ? nullptr : ::fdopendir(mine);
  if (folder == nullptr) {
    if (mine >= 0) (void)::close(mine);
    return true;
  }
  bool found = false;
  for (const dirent* entry = nullptr; !found && (entry = ::readdir(folder)) != nullptr;) {
    if (entry->d_name[0] == '.' || std::atoi(entry->d_name) == ::getpid()) continue;
    char name[17] = "";
    const bool lives = read_about(threads, entry->d_name, "comm", name, sizeof name) != 0;
    const bool ours = std::strncmp(name, "ringmain", 8) == 0 && (name[8] == ':' || name[8] == '/');
    found = lives && !ours;
  }
  (void)::closedir(folder);
  return found;
}

/// The main thread's status: the last of 52 words of its line. 0 if it is missing.
int status_of_main_thread(int threads) noexcept {
  char id[16];
  char line[1024] = "";
  (void)std::snprintf(id, sizeof id, "%d", ::getpid());
  (void)read_about(threads, id, "stat", line, sizeof line);
  const char* const last = std::strrchr(line, ' ');
  return last == nullptr ? 0 : std::atoi(last + 1) >> 8 & 0xff;
}

/// Looks ever more seldom, so that the process ends at most 2 % of its time later.
int await_solitude_in(int threads) noexcept {
  // A process ends with the status of its last thread. Only the main thread's can be read; the C
  // library ends others with 0.
  if (!others_are_there(threads)) return status_of_main_thread(threads);
  const std::int64_t begun = engine::now_ns();
  while (others_are_there(threads)) {
    const std::int64_t pause_ns =
        std::clamp<std::int64_t>((engine::now_ns() - begun) / 64, 1'000'000, 100'000'000);
    const timespec for_so_long{0, pause_ns};
    (void)::nanosleep(&for_so_long, nullptr);
  }
  return 0;
}

}  // namespace

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
  standard_error.remember();
  try {
    const engine::BlockedSignals blocked;  // they are the program's
    std::thread([made] { made->run(); }).detach();
    await_change(made->done_, 0, engine::now_ns() + limit.count());
  } catch (const std::system_error&) {
    made->alone_ = true;
    standard_error.keep_one_more();
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
    threads_ = ::open(kThreads, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } else {
    standard_error.keep_one_more();
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
  if (alone_) return await_solitude_in(::open(kThreads, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
    const int threads =
        threads_ >= 0 ? threads_ : ::open(kThreads, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
