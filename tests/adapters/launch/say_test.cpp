// Does a program notice that something was said in it?
#include "adapters/launch/say.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

/// Puts a pipe in the place of standard error.
class PipedError {
 public:
  PipedError() {
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    (void)::dup2(ends_[1], STDERR_FILENO);
    (void)::close(ends_[1]);
  }
  PipedError(const PipedError&) = delete;
  PipedError& operator=(const PipedError&) = delete;
  ~PipedError() {
    (void)::dup2(kept_, STDERR_FILENO);
    (void)::close(kept_);
    stop_reading();
  }
  void stop_reading() {
    if (ends_[0] >= 0) (void)::close(ends_[0]);
    ends_[0] = -1;
  }
  [[nodiscard]] std::string read() const {
    char text[8192];
    const ssize_t bytes = ::read(ends_[0], text, sizeof text);
    return {text, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
  }

 private:
  const int kept_ = ::dup(STDERR_FILENO);
  std::array<int, 2> ends_{-1, -1};
};

TEST(SayTest, ASentenceIsOneLineOfOneWrite) {
  const PipedError error;
  say({"it is ", "so"});
  EXPECT_EQ(error.read(), "ringmain: it is so\n");
  const std::string path(3000, 'p');
  say({path.c_str()});
  EXPECT_EQ(error.read(), "ringmain: " + path + "\n") << "nothing is cut";
}

TEST(SayTest, ThereIsRoomForEightParts) {
  const PipedError error;
  say({"1", "2", "3", "4", "5", "6", "7", "8", "9"});
  EXPECT_EQ(error.read(), "ringmain: 12345678\n");
}

TEST(SayTest, APipeThatNobodyReadsRaisesNoSignal) {
  PipedError error;
  error.stop_reading();
  errno = 71;
  say({"nobody reads this"});
  EXPECT_EQ(errno, 71);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

TEST(SayTest, ASignalThatTheProgramHoldsBackStays) {
  sigset_t pipe;
  sigset_t before;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  (void)::pthread_kill(::pthread_self(), SIGPIPE);
  {
    PipedError error;
    error.stop_reading();
    say({"nobody reads this either"});
  }
  const timespec at_once{};
  EXPECT_EQ(::sigtimedwait(&pipe, nullptr, &at_once), SIGPIPE);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(SayTest, WithoutADescriptorNothingIsWritten) {
  char text[] = "nowhere";
  const iovec part{text, sizeof text};
  errno = 0;
  write_unnoticed(-1, &part, 1);
  EXPECT_EQ(errno, 0);
}

}  // namespace
}  // namespace ringmain::run
