// How does a sentence get out of another program's process?
//
// In one system call, so that the lines of several processes stay whole. The program does not
// notice: no memory is allocated, errno stays, and a pipe without a reader raises no SIGPIPE. Needs
// no more than the C library.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <sys/uio.h>
#include <unistd.h>

namespace ringmain::run {

/// Writes nothing if `fd` is below 0.
[[gnu::visibility("hidden")]] inline void write_unnoticed(int fd, const iovec* parts,
                                                          int count) noexcept {
  if (fd < 0) return;
  const int saved = errno;
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ::sigpending(&pending);
  const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
  const bool broken = ::writev(fd, parts, count) < 0 && errno == EPIPE;
  const timespec at_once{};
  if (broken && !was_pending) (void)::sigtimedwait(&pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved;
}

/// Writes "ringmain: ", up to eight parts and a line end to standard error. For libraries that may
/// be used before a run has begun; after that, standard_error.hpp knows that of the start.
[[gnu::visibility("hidden")]] inline void say(std::initializer_list<const char*> parts) noexcept {
  constexpr std::size_t kMost = 8;
  iovec all[kMost + 2];
  int count = 0;
  const auto add = [&](const char* text) {
    all[count++] = {const_cast<char*>(text), std::strlen(text)};
  };
  add("ringmain: ");
  for (const char* const part : parts) {
    if (static_cast<std::size_t>(count) <= kMost) add(part);
  }
  add("\n");
  write_unnoticed(STDERR_FILENO, all, count);
}

}  // namespace ringmain::run
