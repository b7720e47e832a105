// Does a look at stacks that goes wrong leave the program as it was? An interpreter of the test's
// own stands in for Python's: its walk crashes, aborts, or leaves what it was told to.
#include "bus/core/python_stacks.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bus/door.hpp"

// Their names tell the two programs of it apart.
#if RINGMAIN_TESTS_LENDS == 15
#define PythonStacksTest PythonStacksOf315Test
#endif

namespace {

enum class Walk { well, crashes, aborts, is_of_a_broken_list, gets_a_signal, waits };
Walk walk = Walk::well;
std::atomic<bool> waiting{false}, may_go_on{false};
int threads = 3;
bool initialized = true;

struct Thread {
  Thread* next = nullptr;
};
std::array<Thread, 200> all;

[[maybe_unused]] void say(int fd, const char* text) {
  (void)!::write(fd, text, std::strlen(text));
}

}  // namespace

// What the interpreter lends, by its own names.
extern "C" {
int Py_IsInitialized() {
  return initialized ? 1 : 0;
}
const char* Py_GetVersion() {
  return RINGMAIN_TESTS_PYTHON " (a stand-in)";
}
void* PyInterpreterState_Head() {
  return &all;
}
void* PyInterpreterState_Next(void*) {
  return nullptr;
}
void* PyInterpreterState_ThreadHead(void*) {
  for (int i = 0; i < threads; ++i)
    all[static_cast<std::size_t>(i)].next =
        i + 1 < threads ? &all[static_cast<std::size_t>(i) + 1] : nullptr;
  if (walk == Walk::is_of_a_broken_list) all[0].next = &all[0];
  return &all[0];
}
void* PyThreadState_Next(void* thread) {
  return static_cast<Thread*>(thread)->next;
}
#if defined(RINGMAIN_TESTS_UNSANITIZED) && !RINGMAIN_TESTS_LENDS
void __tsan_init() {}
#endif
#if RINGMAIN_TESTS_LENDS
const char* RINGMAIN_TESTS_WALK(int fd, void*, void*
#if RINGMAIN_TESTS_LENDS == 15
                                ,
                                ssize_t
#endif
) {
  say(fd, "Thread 0x1 (most recent call first):\n");
  if (walk == Walk::crashes) *reinterpret_cast<volatile int*>(8) = 1;
  if (walk == Walk::aborts) std::abort();
  if (walk == Walk::waits) {  // its process shares this memory
    waiting = true;
    while (!may_go_on) ::sched_yield();
  }
  if (walk == Walk::gets_a_signal) (void)::kill(::getpid(), SIGUSR2);  // the child alone
  return nullptr;
}
void _Py_DumpTraceback(int fd, void* thread) {
  say(fd, thread == &all[static_cast<std::size_t>(threads) - 1] ? "the main one\n" : "another\n");
}
#endif
}  // extern "C"

namespace ringmain::tests {
namespace {

std::atomic<int> handled{0};

#if RINGMAIN_TESTS_LENDS
class PythonStacksTest : public testing::Test {
 protected:
  PythonStacksTest() {
    walk = Walk::well;
    threads = 3;
    initialized = true;
    struct sigaction counts {};
    counts.sa_handler = [](int) {
      if (++handled > 1000) ::_exit(3);  // a crash comes again and again
    };
    ::sigaction(SIGCHLD, &counts, &child_);
    ::sigaction(SIGSEGV, &counts, &crash_);
    ::sigaction(SIGABRT, &counts, &abort_);
    ::sigaction(SIGUSR2, &counts, &user_);
    handled = 0;
  }
  ~PythonStacksTest() override {
    EXPECT_EQ(handled, 0);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child that the program could find
    EXPECT_EQ(errno, ECHILD);
    struct sigaction now {};
    ::sigaction(SIGSEGV, nullptr, &now);
    EXPECT_NE(now.sa_handler, SIG_DFL);
    ::sigaction(SIGCHLD, &child_, nullptr);
    ::sigaction(SIGSEGV, &crash_, nullptr);
    ::sigaction(SIGABRT, &abort_, nullptr);
    ::sigaction(SIGUSR2, &user_, nullptr);
  }
  static std::string stacks() {
    auto told = python_stacks();
    return told ? std::move(told).value() : "refused: " + told.error().message;
  }

 private:
  struct sigaction child_ {
  }, crash_{}, abort_{}, user_{};
};

TEST_F(PythonStacksTest, AWalkThatGoesWellIsToldBelowTheProcess) {
  const std::string told = stacks();
  EXPECT_TRUE(told.starts_with("Process " + std::to_string(::getpid()) + " (")) << told;
  EXPECT_NE(told.find(", Python " RINGMAIN_TESTS_PYTHON "\n\nThread 0x1"), told.npos) << told;
  EXPECT_EQ(told.find("ended here"), told.npos) << told;
}

TEST_F(PythonStacksTest, AWalkThatCrashesEndsItsChildAlone) {
  for (const Walk bad : {Walk::crashes, Walk::aborts}) {
    walk = bad;
    for (int i = 0; i < 20; ++i) {
      const std::string told = stacks();
      EXPECT_NE(told.find("Thread 0x1"), told.npos) << told;
      EXPECT_NE(told.find("The look at the stacks ended here"), told.npos) << told;
    }
  }
  walk = Walk::well;
  EXPECT_EQ(stacks().find("ended here"), std::string::npos);
}

/// A program that reaps every child there is may take the one that looks, and what it ended with.
TEST_F(PythonStacksTest, AWalkThatCrashesIsToldThoughTheProgramTakesItsChild) {
  std::atomic<int> taken{0};
  std::atomic<bool> over{false};
  std::thread takes([&] {
    while (!over) {
      if (::waitpid(-1, nullptr, __WALL | WNOHANG) > 0) ++taken;
    }
  });
  walk = Walk::crashes;
  for (int i = 0; i < 2000 && taken < 20; ++i) {
    const std::string told = stacks();
    EXPECT_NE(told.find("The look at the stacks ended here"), told.npos) << told;
  }
  over = true;
  takes.join();
}

/// A signal to all processes of a group, or to all of a name, reaches the child as well.
TEST_F(PythonStacksTest, NoHandlerOfTheProgramsRunsInTheChild) {
  walk = Walk::gets_a_signal;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(stacks().find("ended here"), std::string::npos);
  EXPECT_EQ(handled, 0);
  (void)::raise(SIGUSR2);
  EXPECT_EQ(handled.exchange(0), 1) << "the program's own is there as before";
}

TEST_F(PythonStacksTest, WhereFilesMustBeSmallThereIsASentence) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1u << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string told = stacks();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(told.find("(ulimit -f)"), told.npos) << told;
}

#if RINGMAIN_TESTS_LENDS != 15
TEST_F(PythonStacksTest, OfMoreThanAHundredTheOldestIsAdded) {
  EXPECT_EQ(stacks().find("the oldest"), std::string::npos);
  threads = 120;
  const std::string told = stacks();
  EXPECT_NE(told.find("Of 120 threads the oldest, which is left out above:\nthe main one"),
            told.npos)
      << told;
}

TEST_F(PythonStacksTest, AListThatLeadsInACircleEnds) {
  walk = Walk::is_of_a_broken_list;
  EXPECT_NE(stacks().find("Thread 0x1"), std::string::npos);
}
#endif

TEST_F(PythonStacksTest, AForkedChildHasItsOwnThoughItsParentWasAtThem) {
  walk = Walk::waits;
  std::thread first([] { EXPECT_NE(stacks().find("Thread 0x1"), std::string::npos); });
  while (!waiting) std::this_thread::yield();
  walk = Walk::well;
  struct sigaction hears {
  }, unheard{};
  unheard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &unheard, &hears);  // this child is the program's
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // where it would wait for ever
    ::_exit(stacks().find("Thread 0x1") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::sigaction(SIGCHLD, &hears, nullptr);
  may_go_on = true;
  first.join();
}

TEST_F(PythonStacksTest, BeforeAndAfterItsLifeThereIsASentence) {
  initialized = false;
  EXPECT_EQ(stacks(), "refused: Python has not started in this process, or has ended");
}
#else
TEST(PythonThatLendsNothingTest, SaysSoWithItsVersion) {
  const auto told = python_stacks();
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("Python " RINGMAIN_TESTS_PYTHON " does not lend"),
            std::string::npos)
      << told.error().message;
}

#ifdef RINGMAIN_TESTS_UNSANITIZED
TEST(OpenDoorTest, AProgramBuiltWithThreadSanitizerHasNone) {
  const auto made = open_door();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("ThreadSanitizer"), std::string::npos);
}
#endif
#endif

}  // namespace
}  // namespace ringmain::tests
