// What does a thread's first publish need of its process? No lock that a fork holds, and from the
// second publish on, where its source wants it so, no system call.
#include <atomic>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/system/atomics.hpp"

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

// --- beside a fork ---

std::atomic<bool> another_waits{false};
std::atomic<bool> forking{false};
std::atomic<bool> let_go{false};
std::atomic<bool> was_let_go{false};

/// A library's handler that was there before ringmain: at a fork it runs after ringmain's, which
/// hold their locks until the fork is over. This library waits for a thread that calls it.
void before_fork_in_a_library() {
  if (!another_waits) return;
  forking = true;
  was_let_go = eventually([] { return let_go.load(); });
}

void register_the_library() {
  (void)::pthread_atfork(&before_fork_in_a_library, nullptr, nullptr);
}
/// Before the constructors of shared libraries, so before any handler of ringmain.
[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)() = &register_the_library;

/// A thread's table drops the buses that have ended when it is full, and so may be the last to let
/// go of them: in the middle of a publish, in a call of that library.
TEST(TakingTest, AThreadThatLetsGoOfEndedBusesWaitsForNoFork) {
  enum : int { kBuses = 8 };  // a table of 16 is full then
  std::atomic<Channel<Tick>*> next{nullptr};
  std::atomic<int> published{0};
  std::thread publisher([&] {
    for (int i = 0; i < kBuses + 1; ++i) {
      ASSERT_TRUE(eventually([&] { return next.load() != nullptr; }));
      if (i == kBuses) {
        ASSERT_TRUE(eventually([] { return forking.load(); }));
      }
      EXPECT_EQ(next.exchange(nullptr)->publish({}), PublishCode::accepted);
      if (i == kBuses) let_go = true;
      ++published;
    }
  });
  const auto publish_on = [&](Bus& bus) {
    auto& ticks = bus.channel<Tick>();
    Subscription sub = ticks.subscribe([](const Tick&) {});
    next = &ticks;
    return sub;
  };
  for (int i = 0; i < kBuses; ++i) {
    Bus bus(with_workers(1));
    const Subscription sub = publish_on(bus);
    ASSERT_TRUE(eventually([&] { return published == i + 1; }));
  }
  Bus bus(with_workers(1));
  const Subscription sub = publish_on(bus);
  another_waits = true;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  another_waits = false;
  ASSERT_GT(child, 0);
  publisher.join();
  EXPECT_EQ(ended(child), kFine);
  EXPECT_TRUE(was_let_go) << "it waited for the fork, which waited for it";
}

// --- no system call ---

/// From here on a system call of this thread ends the process. False: it cannot be forbidden here.
bool forbid_all_system_calls() {
  sock_filter rule = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  sock_fprog filter{1, &rule};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

enum : int { kCannotForbid = 3 };

/// Publishes in a thread that may make no system call after its first publish, each event while the
/// worker sleeps.
void publish_without_system_calls(Findings& findings, const PublisherOptions& options) {
  enum : std::uint64_t { kEvents = 50 };
  static std::atomic<std::uint64_t> heard{0};
  static std::atomic<std::uint64_t> may_publish{1};
  static std::atomic<long> worker{0};
  auto* bus = new Bus(with_workers(1));  // it outlives this function, as its publisher does
  auto& ticks = bus->channel<Tick>();
  auto* sub = new Subscription(ticks.subscribe([](const Tick& t) {
    worker = ::gettid();
    heard = t.n;
  }));
  findings.expect(sub->attached(), "no subscriber");
  findings.expect(ticks.set_thread_lanes(options).has_value(), "the lanes are refused");
  std::thread([&ticks] {
    (void)ticks.publish({1});
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !forbid_all_system_calls())
      ::_exit(kCannotForbid);
    for (std::uint64_t n = 2;; ++n) {
      while (may_publish < n) engine::pause();  // for ever in the end: not even that is allowed
      (void)ticks.publish({n});
    }
  }).detach();
  for (std::uint64_t n = 1; n <= kEvents; ++n) {
    may_publish = n;
    findings.expect(eventually([n] { return heard == n && is_asleep(worker); }), "it is not heard");
  }
}

std::string end_of_one_with(const PublisherOptions& options) {
  return in_child([&](Findings& f) { publish_without_system_calls(f, options); },
                  Leave::by_underscore_exit);
}

TEST(TakingTest, ARealtimeThreadsPublishesMakeNoSystemCall) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  const std::string end = end_of_one_with({.capacity_events = 64, .realtime = true});
  if (end == "exited with 3") GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(end, kFine);
}

/// What the test above would find.
TEST(TakingTest, OneThatWakesAWorkerIsFoundToMakeASystemCall) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  const std::string end = end_of_one_with({.capacity_events = 64, .lane = LaneKind::ring});
  if (end == "exited with 3") GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(end, "killed by 31 (Bad system call)");
}

/// As above, on a channel that is recorded and that nobody hears.
void record_without_system_calls(Findings& findings) {
  enum : std::uint64_t { kEvents = 500 };
  static std::atomic<bool> over{false};
  const Folder folder;
  auto* bus = new Bus(with_workers(1));  // it outlives this function, as its publisher does
  auto made = bus->record("test.*", in_folder(folder.path()));
  findings.expect(made.has_value() && made.value().complaint().empty(), "it is not recorded");
  auto* const recording = new Recording(std::move(made).value());
  auto& ticks = bus->channel<Tick>();
  std::thread([&ticks] {
    (void)ticks.publish({1});
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !forbid_all_system_calls())
      ::_exit(kCannotForbid);
    for (std::uint64_t n = 2; n <= kEvents; ++n) (void)ticks.publish({n});
    over = true;
    for (;;) engine::pause();  // not even its end is allowed
  }).detach();
  findings.expect(eventually([] { return over.load(); }), "it does not come to its end");
  const auto records = records_of<Tick>(engine::flight::read_flight(recording->path()));
  findings.expect(!records.empty() && records.back().event.n == kEvents, "the last is not there");
}

TEST(TakingTest, ARecordedPublishMakesNoSystemCallAfterTheThreadsFirst) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer makes system calls of its own";
  const std::string end =
      in_child([](Findings& f) { record_without_system_calls(f); }, Leave::by_underscore_exit);
  if (end == "exited with 3") GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(end, kFine);
}

}  // namespace
}  // namespace ringmain::tests
