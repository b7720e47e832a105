// How does a verb that runs for a while wait for Ctrl-C and for its own threads in one call?
#pragma once
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

namespace ringmain::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the process: wait() reports them. Make it
/// before any thread, so that all threads inherit the mask.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&wanted_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&wanted_, signal);
    ::pthread_sigmask(SIG_BLOCK, &wanted_, &before_);
    signals_ = ::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK);
    told_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signals_ < 0 || told_ < 0) {
      throw std::system_error(errno, std::generic_category(), "no file descriptor is left");
    }
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    ::close(signals_);
    ::close(told_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// Ends the wait() that is running, or the next one. Threads: any.
  void tell() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(told_, &one, sizeof one);
  }

  struct Heard {
    int signal = 0;  // 0: none
    bool told = false;
  };
  /// At most `limit_ms`.
  Heard wait(int limit_ms) noexcept {
    std::array<pollfd, 2> watched{{{signals_, POLLIN, 0}, {told_, POLLIN, 0}}};
    (void)::poll(watched.data(), watched.size(), limit_ms);
    Heard heard;
    signalfd_siginfo signal{};
    if (::read(signals_, &signal, sizeof signal) == sizeof signal) {
      heard.signal = static_cast<int>(signal.ssi_signo);
    }
    std::uint64_t count = 0;
    heard.told = ::read(told_, &count, sizeof count) == sizeof count;
    return heard;
  }

 private:
  sigset_t wanted_{};
  sigset_t before_{};
  int signals_ = -1;
  int told_ = -1;
};

}  // namespace ringmain::cli
