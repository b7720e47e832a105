// Is a function called when a signal comes, and can the program tell?
#include "tests/adapters/collective/on_signal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "adapters/sources/collective/flight_recorder_signal.hpp"

#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

namespace fs = std::filesystem;
using collective::detail::OnSignal;

std::atomic<int> own_value{0};

void keep_value(int, siginfo_t* info, void*) {
  ++own_calls;
  own_value = info->si_value.sival_int;
}

TEST_F(OnSignalTest, EachSignalIsToldInAThreadOfItsOwn) {
  std::atomic<pthread_t> where{};
  const OnSignal on(SIGUSR2, [&] {
    where = ::pthread_self();
    ++called_;
  });
  for (int n = 1; n <= 3; ++n) {
    errno = 77;
    ::raise(SIGUSR2);
    EXPECT_EQ(errno, 77);
    await(n);
  }
  EXPECT_NE(where.load(), ::pthread_self());
  EXPECT_EQ(called_, 3);
}

TEST_F(OnSignalTest, SignalsThatComeWhileItIsCalledAreOneMoreCall) {
  std::latch inside(1), go_on(1);
  const OnSignal on(SIGUSR2, [&] {
    if (++called_ > 1) return;
    inside.count_down();
    go_on.wait();
  });
  ::raise(SIGUSR2);
  inside.wait();
  for (int n = 0; n < 100; ++n) ::raise(SIGUSR2);
  EXPECT_EQ(called_, 1);
  go_on.count_down();
  await(2);
  // One more signal: had there been a third call for the hundred, it would have come before.
  ::raise(SIGUSR2);
  await(3);
  EXPECT_EQ(called_, 3);
}

TEST_F(OnSignalTest, TheProgramsOwnHandlerIsCalledAsBefore) {
  set(SIGUSR2, plain(count_call));
  {
    const OnSignal on(SIGUSR2, counts());
    ::raise(SIGUSR2);
    EXPECT_EQ(own_calls, 1);
    await(1);
  }
  EXPECT_EQ(current(SIGUSR2).sa_handler, &count_call);
  ::raise(SIGUSR2);
  EXPECT_EQ(own_calls, 2);
  EXPECT_EQ(called_, 1);

  Action knows{};
  knows.sa_sigaction = &keep_value;
  knows.sa_flags = SA_SIGINFO;
  sigaddset(&knows.sa_mask, SIGUSR1);
  set(SIGUSR2, knows);
  const OnSignal on(SIGUSR2, counts());
  const Action now = current(SIGUSR2);
  EXPECT_EQ(sigismember(&now.sa_mask, SIGUSR1), 1);
  ::sigqueue(::getpid(), SIGUSR2, {.sival_int = 41});
  await(2);
  EXPECT_EQ(own_calls, 3);
  EXPECT_EQ(own_value, 41);
}

TEST_F(OnSignalTest, AHandlerThatIsToBeCalledOnceIsCalledOnce) {
  set(SIGUSR2, plain(count_call, static_cast<int>(SA_RESETHAND)));
  {
    const OnSignal on(SIGUSR2, counts());
    ::raise(SIGUSR2);
    ::raise(SIGUSR2);
    await(1);
  }
  EXPECT_EQ(own_calls, 1);
  EXPECT_EQ(current(SIGUSR2).sa_handler, SIG_DFL);
}

TEST_F(OnSignalTest, WhatWasIgnoredOrLeftToTheSystemIsSoAgain) {
  for (const auto had : {SIG_IGN, SIG_DFL}) {
    set(SIGUSR2, plain(had));
    {
      const OnSignal on(SIGUSR2, counts());
      const int before = called_;
      ::raise(SIGUSR2);
      await(before + 1);
    }
    EXPECT_EQ(current(SIGUSR2).sa_handler, had);
  }
}

Action below;  // what the later handler found
void calls_what_was_there(int number, siginfo_t* info, void* context) {
  ++own_calls;
  below.sa_sigaction(number, info, context);
}

TEST_F(OnSignalTest, AHandlerThatTheProgramSetsLaterStaysAndMayCallOurs) {
  set(SIGUSR2, plain(count_call));
  Action later{};
  later.sa_sigaction = &calls_what_was_there;
  later.sa_flags = SA_SIGINFO;
  {
    const OnSignal on(SIGUSR2, counts());
    below = set(SIGUSR2, later);
    ::raise(SIGUSR2);
    await(1);
    EXPECT_EQ(own_calls, 2);
  }
  EXPECT_EQ(current(SIGUSR2).sa_sigaction, &calls_what_was_there);
  ::raise(SIGUSR2);  // through ours, which is over, to the first
  EXPECT_EQ(own_calls, 4);
  EXPECT_EQ(called_, 1);
  {
    const OnSignal again(SIGUSR2, counts());  // above both
    ::raise(SIGUSR2);
    await(2);
    EXPECT_EQ(own_calls, 6);
  }
  EXPECT_EQ(current(SIGUSR2).sa_sigaction, &calls_what_was_there);
}

TEST_F(OnSignalTest, SeveralShareASignalAndEachEndsByItself) {
  std::optional<OnSignal> first, second;
  first.emplace(SIGUSR2, counts());
  second.emplace(SIGUSR2, counts());
  ::raise(SIGUSR2);
  await(2);
  first.reset();
  ::raise(SIGUSR2);
  await(3);
  second.reset();
  EXPECT_EQ(current(SIGUSR2).sa_handler, before_.sa_handler);
  EXPECT_EQ(called_, 3);
}

TEST_F(OnSignalTest, ManyInTurnTakeNoPlaceForEver) {
  for (int n = 1; n <= 100; ++n) {
    const OnSignal on(n % 2 == 0 ? SIGUSR1 : SIGUSR2, counts());
    ::raise(n % 2 == 0 ? SIGUSR1 : SIGUSR2);
    await(n);
  }
}

TEST_F(OnSignalTest, ItsEndWaitsForACallThatIsRunning) {
  std::latch inside(1);
  std::atomic<bool> over{false};
  std::optional<OnSignal> on;
  on.emplace(SIGUSR2, [&] {
    inside.count_down();
    for (int n = 0; n < 1000; ++n) std::this_thread::yield();
    over = true;
  });
  ::raise(SIGUSR2);
  inside.wait();
  on.reset();
  EXPECT_TRUE(over);
}

/// A thread in read(): what it returns is -errno, or how many bytes there were.
struct Reader {
  Reader() {
    if (::pipe(pipe.data()) != 0) std::abort();
    thread = std::thread([this] {
      tid = ::gettid();
      char byte = 0;
      const ssize_t n = ::read(pipe[0], &byte, 1);
      result = n < 0 ? -errno : static_cast<int>(n);
    });
    while (tid == 0) std::this_thread::yield();
    // 0 is read() on x86-64, 63 on others; the number stands first while a thread waits in a call.
    const std::string file = "/proc/self/task/" + std::to_string(tid) + "/stat";
    std::string stat;
    while (stat.find(") S ") == std::string::npos) {
      std::ifstream in(file);
      std::getline(in, stat);
    }
  }
  int end() {
    (void)!::write(pipe[1], "x", 1);
    thread.join();
    ::close(pipe[0]);
    ::close(pipe[1]);
    return result;
  }
  std::array<int, 2> pipe{};
  std::atomic<pid_t> tid{0};
  std::atomic<int> result{0};
  std::thread thread;
};

TEST_F(OnSignalTest, CallsOfTheSystemThatItInterruptsGoOn) {
  if (is_sanitized()) GTEST_SKIP() << "ThreadSanitizer keeps a signal until the call has ended";
  const OnSignal on(SIGUSR2, counts());
  Reader reader;
  ::pthread_kill(reader.thread.native_handle(), SIGUSR2);
  await(1);
  EXPECT_EQ(reader.end(), 1);
}

TEST_F(OnSignalTest, WhereTheProgramsHandlerEndsThemTheyEnd) {
  if (is_sanitized()) GTEST_SKIP() << "ThreadSanitizer keeps a signal until the call has ended";
  set(SIGUSR2, plain(count_call));  // without SA_RESTART
  const OnSignal on(SIGUSR2, counts());
  Reader reader;
  ::pthread_kill(reader.thread.native_handle(), SIGUSR2);
  await(1);
  EXPECT_EQ(reader.end(), -EINTR);
}

/// What ringmain's thread blocks, a bit for each signal; nullopt: it has not taken its name yet.
std::optional<std::uint64_t> mask_of_dump_thread() {
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "status");
    std::string line;
    bool ours = false;
    while (std::getline(in, line)) {
      if (line == "Name:\tringmain:dump") ours = true;
      if (ours && line.rfind("SigBlk:", 0) == 0) return std::stoull(line.substr(8), nullptr, 16);
    }
  }
  return std::nullopt;
}

TEST_F(OnSignalTest, AThreadThatDoesNotBlockItIsEnoughAndOursBlocksAll) {
  const OnSignal on(SIGUSR2, counts());
  sigset_t mine, had;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &mine, &had);
  ::kill(::getpid(), SIGUSR2);  // it waits: ours is not to take what a sigwait() may want
  std::optional<std::uint64_t> blocked;
  while (!blocked) blocked = mask_of_dump_thread();
  for (const int number : {SIGUSR2, SIGUSR1, SIGTERM, SIGINT, SIGPROF, SIGALRM, SIGCHLD})
    EXPECT_NE(*blocked & (std::uint64_t{1} << (number - 1)), 0u) << number;
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR2), 1);
  EXPECT_EQ(called_, 0);
  std::thread([&had] { ::pthread_sigmask(SIG_SETMASK, &had, nullptr); }).join();
  await(1);
  ::pthread_sigmask(SIG_SETMASK, &had, nullptr);
}

TEST_F(OnSignalTest, AForkedChildHasTheProgramsHandlersAndMayHaveItsOwn) {
  set(SIGUSR2, plain(count_call));
  std::optional<OnSignal> on;
  on.emplace(SIGUSR2, counts());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // where it would wait for ever
    bool fine = current(SIGUSR2).sa_handler == &count_call;
    ::raise(SIGUSR2);
    fine = fine && own_calls == 1;
    on.reset();
    fine = fine && current(SIGUSR2).sa_handler == &count_call;
    if (!is_sanitized()) {  // ThreadSanitizer lets no forked child have threads
      const OnSignal own(SIGUSR2, counts());
      ::raise(SIGUSR2);
      await(1);
      fine = fine && own_calls == 2;
    }
    ::_exit(fine && current(SIGUSR2).sa_handler == &count_call ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::raise(SIGUSR2);
  await(1);
  EXPECT_EQ(called_, 1);
}

TEST_F(OnSignalTest, ASignalThatWouldLoseItsMeaningIsRefused) {
  const auto why = [](int number) -> std::string {
    try {
      const OnSignal on(number, [] {});
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(why(SIGKILL),
            "dumps_on_signal is SIGKILL, which no program can handle: give SIGUSR1 or SIGUSR2");
  EXPECT_NE(why(SIGSEGV).find("cannot go on"), std::string::npos);
  EXPECT_NE(why(SIGCHLD).find("children"), std::string::npos);
  EXPECT_NE(why(SIGTERM).find("set the program's own handler first"), std::string::npos);
  EXPECT_NE(why(99).find("99, which is no signal"), std::string::npos);
  EXPECT_NE(why(-1).find("no signal"), std::string::npos);
  EXPECT_EQ(why(SIGRTMIN), "");
  EXPECT_EQ(why(SIGWINCH), "");
  const Action had = set(SIGTERM, plain(count_call));
  EXPECT_EQ(why(SIGTERM), "");
  set(SIGTERM, had);
}

}  // namespace
}  // namespace ringmain::tests
