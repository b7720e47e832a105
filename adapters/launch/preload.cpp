// Where does libringmain_run enter a program, and how does it notice the ends that run no handlers?
//
// exec replaces the program with all that is queued in it, and _exit runs no handlers. Both are
// intercepted, in the process of the run only; in a child of fork or vfork, and outside a run, they
// cost one load. Ends that cannot be seen from inside (SIGKILL, a crash) lose what the sinks have
// not heard yet: docs/run.md.
#include <alloca.h>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "adapters/launch/main_thread.hpp"
#include "adapters/launch/original.hpp"
#include "adapters/launch/run.hpp"
#include "adapters/run.hpp"

namespace ringmain::run {

namespace {

using ExecveFn = int(const char*, char* const[], char* const[]);
using FexecveFn = int(int, char* const[], char* const[]);
using ExecveatFn = int(int, const char*, char* const[], char* const[], int);
using ExitThreadFn = void(void*);
using CancelFn = int(pthread_t);

// Looked up before main: dlsym may not be called in a child of a program with threads.
struct Real {
  ExecveFn* execve = original<ExecveFn>("execve");
  ExecveFn* execvpe = original<ExecveFn>("execvpe");
  FexecveFn* fexecve = original<FexecveFn>("fexecve");
  ExecveatFn* execveat = original<ExecveatFn>("execveat");
  ExitThreadFn* pthread_exit = original<ExitThreadFn>("pthread_exit");
  CancelFn* pthread_cancel = original<CancelFn>("pthread_cancel");
};
const Real& reals() noexcept {
  static const Real found;
  return found;
}

/// Bytes that the words of execl(first, …, nullptr) and their end take.
std::size_t bytes_of(const char* first, va_list words) noexcept {
  std::size_t count = 1;
  va_list rest;
  va_copy(rest, words);
  for (const char* word = first; word != nullptr; word = va_arg(rest, const char*)) ++count;
  va_end(rest);
  return count * sizeof(char*);
}

struct Listed {
  char** words;
  char* const* environment;  // of execle
};
/// Puts the words into `room` on the caller's stack: a handler that interrupted malloc may call
/// exec, and what a child of vfork allocates is leaked in its parent.
Listed listed(void* room, const char* first, va_list words, bool with_environment) noexcept {
  char** const made = static_cast<char**>(room);
  std::size_t count = 0;
  for (const char* word = first;; word = va_arg(words, const char*)) {
    made[count++] = const_cast<char*>(word);
    if (word == nullptr) break;
  }
  return {made, with_environment ? va_arg(words, char* const*) : nullptr};
}

/// No handler of the program runs while it waits: without ringmain there would be no time for one.
[[noreturn]] void leave_now(int status) noexcept {
  sigset_t all;
  ::sigfillset(&all);
  (void)::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, _NSIG / 8);
  leave_by(true);
  for (;;) ::syscall(SYS_exit_group, status);
}

/// As daemon() does.
bool let_nothing_be_read_or_written() noexcept {
  const int nothing = ::open("/dev/null", O_RDWR);
  struct stat is {};
  if (nothing < 0 || ::fstat(nothing, &is) != 0) return false;
  if (!S_ISCHR(is.st_mode) || is.st_rdev != makedev(1, 3)) {
    (void)::close(nothing);
    errno = ENODEV;
    return false;
  }
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(nothing, fd);
  if (nothing > STDERR_FILENO) (void)::close(nothing);
  return true;
}

__attribute__((constructor)) void enter() {
  const int saved = errno;
  (void)reals();
  hold_main_thread();
  (void)::at_quick_exit([] { finish(); });
  start_at_start();
  errno = saved;
}
__attribute__((destructor)) void leave() {
  finish();
}

}  // namespace
}  // namespace ringmain::run

using ringmain::run::bytes_of;
using ringmain::run::leave_by;
using ringmain::run::leave_now;
using ringmain::run::let_nothing_be_read_or_written;
using ringmain::run::listed;
using ringmain::run::Listed;
using ringmain::run::reals;

extern "C" {

void _exit(int status) {
  leave_now(status);
}
void _Exit(int status) noexcept {
  leave_now(status);
}
/// The C library's daemon() calls _exit inside, which cannot be intercepted.
int daemon(int same_folder, int same_files) noexcept {
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child > 0) leave_now(0);
  if (::setsid() < 0) return -1;
  if (same_folder == 0) (void)!::chdir("/");
  return same_files != 0 || let_nothing_be_read_or_written() ? 0 : -1;
}

void pthread_exit(void* result) {
  if (ringmain::run::is_main_thread(::pthread_self())) ringmain::run::main_thread_leaves_in_order();
  for (;;) reals().pthread_exit(result);
}
int pthread_cancel(pthread_t thread) {
  if (ringmain::run::is_main_thread(thread)) ringmain::run::main_thread_leaves_in_order();
  return reals().pthread_cancel(thread);
}

int execve(const char* path, char* const words[], char* const environment[]) noexcept {
  leave_by(false);
  return reals().execve(path, words, environment);
}
int execv(const char* path, char* const words[]) noexcept {
  return ::execve(path, words, environ);
}
int execvpe(const char* name, char* const words[], char* const environment[]) noexcept {
  leave_by(false);
  return reals().execvpe(name, words, environment);
}
int execvp(const char* name, char* const words[]) noexcept {
  return ::execvpe(name, words, environ);
}
int fexecve(int fd, char* const words[], char* const environment[]) noexcept {
  leave_by(false);
  return reals().fexecve(fd, words, environment);
}
int execveat(int folder, const char* path, char* const words[], char* const environment[],
             int flags) noexcept {
  leave_by(false);
  return reals().execveat(folder, path, words, environment, flags);
}
int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  void* const room = alloca(bytes_of(first, rest));
  const Listed list = listed(room, first, rest, false);
  va_end(rest);
  return ::execv(path, list.words);
}
int execlp(const char* name, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  void* const room = alloca(bytes_of(first, rest));
  const Listed list = listed(room, first, rest, false);
  va_end(rest);
  return ::execvp(name, list.words);
}
int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  void* const room = alloca(bytes_of(first, rest));
  const Listed list = listed(room, first, rest, true);
  va_end(rest);
  return ::execve(path, list.words, list.environment);
}

}  // extern "C"
