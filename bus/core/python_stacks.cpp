#include "bus/core/python_stacks.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <mutex>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/system/fork.hpp"

#include "bus/rank.hpp"

namespace ringmain::detail {
namespace {

constexpr std::size_t kStackBytes = 256u << 10;
constexpr rlim_t kBytesMax = 8u << 20;
constexpr int kThreadsShown = 100;      // by the interpreter, the newest first
constexpr int kThreadsMax = 1'000'000;  // a list that another thread changes may lead in a circle
constexpr int kCrashed = 77;
constexpr int kSecondsMax = 5;

/// What is exported: _Py_DumpTracebackThreads up to Python 3.12, PyUnstable_… from 3.15 on.
struct Python {
  int (*is_initialized)() = nullptr;
  const char* (*version)() = nullptr;
  void* (*first)() = nullptr;
  void* (*next)(void*) = nullptr;
  void* (*first_thread)(void*) = nullptr;
  void* (*next_thread)(void*) = nullptr;
  const char* (*dump_threads)(int, void*, void*) = nullptr;
  void (*dump_one)(int, void*) = nullptr;
  const char* (*dump_threads_3_15)(int, void*, void*, ssize_t) = nullptr;
  char name[64] = "";

  [[nodiscard]] bool walks() const noexcept {
    return first != nullptr && next != nullptr && first_thread != nullptr &&
           next_thread != nullptr && (dump_threads != nullptr || dump_threads_3_15 != nullptr);
  }
};
constinit Python python;

/// Never destroyed, and not of the heap: who wants the stacks may have no memory for it.
engine::FreshMutex& one_at_a_time() {
  alignas(engine::FreshMutex) static std::byte room[sizeof(engine::FreshMutex)];
  static engine::FreshMutex& it = *new (room) engine::FreshMutex(engine::kForkFlight);
  return it;
}

template <class F>
void look_up(F*& function, const char* name) noexcept {
  function = reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

void write_text(int fd, const char* text) noexcept {
  (void)!::write(fd, text, std::strlen(text));
}

/// The 101st thread and older ones are left out, and the oldest is the main thread.
void write_oldest(int fd, void* interpreter) noexcept {
  void* oldest = nullptr;
  int threads = 0;
  for (void* at = python.first_thread(interpreter); at != nullptr && threads < kThreadsMax;
       at = python.next_thread(at), ++threads)
    oldest = at;
  if (threads <= kThreadsShown || python.dump_one == nullptr) return;
  char line[96];
  (void)std::snprintf(line, sizeof line, "\nOf %d threads the oldest, which is left out above:\n",
                      threads);
  write_text(fd, line);
  python.dump_one(fd, oldest);
}

/// In the child.
void walk(int fd) noexcept {
  int number = 0;
  for (void* at = python.first(); at != nullptr && number < kThreadsShown;
       at = python.next(at), ++number) {
    if (number > 0) write_text(fd, "\nAnother interpreter of this process:\n");
    const char* const fault = python.dump_threads_3_15 != nullptr
                                  ? python.dump_threads_3_15(fd, at, nullptr, kThreadsMax)
                                  : python.dump_threads(fd, at, nullptr);
    if (fault != nullptr) {
      write_text(fd, fault);
      write_text(fd, "\n");
    }
    if (python.dump_threads_3_15 == nullptr) write_oldest(fd, at);
  }
}

/// On a stack that AddressSanitizer does not know.
#define RINGMAIN_ON_ANOTHER_STACK __attribute__((no_sanitize_address))

[[noreturn]] RINGMAIN_ON_ANOTHER_STACK void leave(int status) noexcept {
  for (;;) ::syscall(SYS_exit_group, status);
}

/// As the kernel has it.
struct Action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

/// The child's own table of actions, by system calls: what the C library, or a sanitizer, knows of
/// the program's handlers lies in the memory that is shared.
void let_crashes_end_this_child() noexcept {
  constexpr unsigned long kRestorer = 0x04000000;  // the processor wants one; none is used
  Action action{[](int) { leave(kCrashed); }, kRestorer, [] { leave(kCrashed); }, 0};
  unsigned long ours = 0;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXFSZ, SIGALRM}) {
    (void)::syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof action.mask);
    ours |= 1UL << (signal - 1);
  }
  // All others stay blocked: the program's handlers would run here, in its memory, and once more.
  (void)::syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &ours, nullptr, sizeof ours);
  const itimerval limit{{0, 0}, {kSecondsMax, 0}};
  (void)::syscall(SYS_setitimer, ITIMER_REAL, &limit, nullptr);
}

/// The child's memory is the parent's, so it says there that it came to the end: what it ended with
/// may be the program's by then, which waits for whatever child there is.
struct Look {
  int fd;
  bool is_whole = false;
};

RINGMAIN_ON_ANOTHER_STACK int in_child(void* argument) {
  Look& look = *static_cast<Look*>(argument);
  let_crashes_end_this_child();
  walk(look.fd);
  look.is_whole = true;
  leave(0);
}

/// As posix_spawn() does it: memory is shared and not copied, no handler of a fork runs, and this
/// thread sleeps until the child has ended. The others go on. Its end raises no SIGCHLD, and no
/// wait() of the program's finds it but with __WALL or __WCLONE, from which Linux keeps no child.
bool walk_in_child(Look& look) noexcept {
  void* const stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);  // the child begins with it
  const pid_t child =
      ::clone(in_child, static_cast<char*>(stack) + kStackBytes, CLONE_VM | CLONE_VFORK, &look);
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Of this thread's own, and none that signals: where the program has taken it, its number may be
  // another child's by now.
  constexpr auto kOwnWithoutASignal = static_cast<int>(__WCLONE | __WNOTHREAD);
  while (child > 0 && ::waitpid(child, nullptr, kOwnWithoutASignal) < 0 && errno == EINTR) {
  }
  (void)::munmap(stack, kStackBytes);
  return child > 0;
}

const char* why_not() noexcept {
  static constinit char sentence[256] = "";
  if (python.is_initialized == nullptr) return "there is no Python in this process";
  if (python.is_initialized() == 0) return "Python has not started in this process, or has ended";
  if (python.walks()) return nullptr;
  (void)std::snprintf(sentence, sizeof sentence,
                      "Python %s does not lend the function that writes stacks without the GIL, as "
                      "3.4 to 3.12 do, and 3.15; py-spy can look at it from outside",
                      python.name);
  return sentence;
}

}  // namespace

void find_python() noexcept {
  (void)one_at_a_time();
  if (python.is_initialized != nullptr) return;
  look_up(python.version, "Py_GetVersion");
  look_up(python.first, "PyInterpreterState_Head");
  look_up(python.next, "PyInterpreterState_Next");
  look_up(python.first_thread, "PyInterpreterState_ThreadHead");
  look_up(python.next_thread, "PyThreadState_Next");
  look_up(python.dump_threads, "_Py_DumpTracebackThreads");
  look_up(python.dump_one, "_Py_DumpTraceback");
  look_up(python.dump_threads_3_15, "PyUnstable_DumpTracebackThreads");
  if (python.version != nullptr) {
    const char* const said = python.version();
    (void)std::snprintf(python.name, sizeof python.name, "%.*s",
                        static_cast<int>(std::strcspn(said, " ")), said);
  }
  look_up(python.is_initialized, "Py_IsInitialized");
}

bool has_python() noexcept {
  find_python();
  return python.is_initialized != nullptr;
}

const char* write_python_stacks(int fd, const char* process) noexcept {
  find_python();  // where it came after the door
  if (const char* const why = why_not()) return why;
  rlimit limit{};  // a file in memory counts, and a write past it would cost the program a SIGXFSZ
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kBytesMax)
    return "the process may write files of less than 8 MiB only (ulimit -f), and stacks may take "
           "as "
           "much";
  write_text(fd, process);
  write_text(fd, ", Python ");
  write_text(fd, python.name);
  write_text(fd, "\n\n");
  Look look{fd};
  if (!walk_in_child(look))
    return "the system gives no process that looks at the stacks (ulimit -u, or a filter of system "
           "calls)";
  if (!look.is_whole)
    write_text(fd,
               "\nThe look at the stacks ended here: a thread changed its own meanwhile; ask "
               "again.\n");
  return nullptr;
}

std::string process_in_words() {
  const RankIdentity me = read_rank_identity();
  std::string words =
      "Process " + std::to_string(::getpid()) + " (" + ::program_invocation_short_name + ")";
  if (me.launcher != "none")
    words += ", rank " + std::to_string(me.rank) + " of " + std::to_string(me.world_size);
  return words;
}

engine::Descriptor python_stacks_in_memory(const char* process, const char*& why) noexcept {
  why = kNoFileInMemory;
  // It takes all that is written without blocking.
  engine::Descriptor file(::memfd_create("ringmain-stacks", MFD_CLOEXEC));
  if (file.get() < 0) return engine::Descriptor(-1);
  const std::lock_guard lock(one_at_a_time());
  why = write_python_stacks(file.get(), process);
  return engine::Descriptor(why == nullptr ? file.release() : -1);
}

}  // namespace ringmain::detail
