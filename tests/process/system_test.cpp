// What the system does to a process, a bus stands: threads that it does not give, signals, stops,
// a wall clock that jumps; and two buses in one process.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <memory>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/child.hpp"

namespace {
std::atomic<int> threads_to_give{1 << 30};
std::atomic<bool> clock_jumps{false};
std::atomic<int> wall_clock_looks{0};
}  // namespace

// Found before the C library's: the library under test calls these. Sanitizers have their own.
#if !RINGMAIN_TESTS_SANITIZED
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_to_give.fetch_sub(1) <= 0) return EAGAIN;
  return real(thread, attributes, start, argument);
}
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto r = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME && clock_jumps) {
    constexpr time_t kTenYears = 10 * 365 * 86'400;
    time->tv_sec += wall_clock_looks.fetch_add(1) % 2 == 0 ? kTenYears : -kTenYears;
  }
  return r;
}
#endif

namespace ringmain::tests {
namespace {

TEST(ThreadsTest, ABusRunsWithAsManyThreadsAsTheSystemGives) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer makes the threads";
  for (int given = 1; given <= 4; ++given) {  // three workers and a housekeeper
    threads_to_give = given;
    Bus bus(with_workers(3));
    threads_to_give = 1 << 30;
    EXPECT_EQ(bus.workers(), static_cast<unsigned>(std::min(given, 3)));
    std::atomic<int> heard{0};
    const Subscription seen = bus.channel<Tick>().subscribe([&heard](const Tick&) { ++heard; });
    const Subscription also = bus.subscribe(">", [&heard](const EventView&) { ++heard; });
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(bus.channel<Tick>().publish({1}));
    EXPECT_TRUE(bus.flush(kLong));
    EXPECT_EQ(heard, 200);
    EXPECT_TRUE(bus.verify_accounting().has_value());
    EXPECT_TRUE(bus.stop().stuck.empty());
  }
}

TEST(ThreadsTest, ABusWithoutOneThreadSaysWhatToDo) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer makes the threads";
  threads_to_give = 0;
  try {
    const Bus bus(with_workers(3));
    ADD_FAILURE() << "a bus without a thread";
  } catch (const std::system_error& e) {
    EXPECT_NE(std::string(e.what()).find("raise the process limit"), std::string::npos) << e.what();
  }
  threads_to_give = 1 << 30;
}

std::atomic<std::uint64_t> signals{0};

/// Signals that interrupt system calls, for as long as it lives.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) { signals.fetch_add(1, std::memory_order_relaxed); };
    for (int s : {SIGPROF, SIGUSR1}) ::sigaction(s, &action, nullptr);
    const itimerval every{{0, 1000}, {0, 1000}};  // 1 kHz
    ::setitimer(ITIMER_PROF, &every, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    ::setitimer(ITIMER_PROF, &never, nullptr);
    for (int s : {SIGPROF, SIGUSR1}) ::signal(s, SIG_IGN);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
};

TEST(SignalsTest, InterruptedCallsLoseNothingAndErrnoIsTheCallers) {
  const unsigned events = rounds("RINGMAIN_SIGNAL_EVENTS", 20'000);
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  Subscription seen = ticks.subscribe([&heard](const Tick&) { ++heard; });
  auto box = ticks.mailbox();
  const Interruptions interruptions;
  std::atomic<int> publishing{2};
  std::atomic<int> others_errno{0};
  std::vector<std::thread> threads;
  for (int p = 0; p < 2; ++p) {
    threads.emplace_back([&] {
      PublisherOptions options;  // so small that it waits again and again
      options.capacity_events = 16;
      options.overflow = Overflow::block;
      options.block_us_max = std::chrono::seconds(60);
      auto publisher = ticks.publisher(options).value();
      for (unsigned n = 1; n <= events; ++n) {
        errno = 77;
        EXPECT_EQ(publisher.publish({n}), PublishCode::accepted);
        if (errno != 77) ++others_errno;
      }
      --publishing;
    });
  }
  threads.emplace_back([&] {
    while (publishing != 0) {
      (void)box.wait_for(std::chrono::milliseconds(1));
      (void)box.drain([](const Tick&) {});
      Subscription short_lived = ticks.subscribe([](const Tick&) {});
      EXPECT_EQ(short_lived.reset(), Detached::done);
      EXPECT_TRUE(bus.flush(kLong));
    }
  });
  while (publishing != 0) {  // the threads are there until they are joined
    for (auto& t : threads) ::pthread_kill(t.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 2 * std::uint64_t{events});
  EXPECT_EQ(others_errno, 0);
  EXPECT_GT(signals, events / 500);
  const auto balance = bus.verify_accounting();
  EXPECT_TRUE(balance.has_value()) << balance.error().message;
}

TEST(SignalsTest, AProcessThatIsStoppedAgainAndAgainLosesNothing) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(kChildSecondsMax);
    Findings f;
    Bus bus(with_workers(2));
    auto& ticks = bus.channel<Tick>();
    std::atomic<std::uint64_t> heard{0};
    const Subscription seen = ticks.subscribe([&heard](const Tick&) { ++heard; });
    std::uint64_t accepted = 0;
    for (std::uint64_t n = 1; n <= 300'000; ++n)
      accepted += ticks.publish({n}) == PublishCode::accepted ? 1u : 0u;
    f.expect(bus.flush(kForEver), "flush");
    f.expect(heard == accepted, "an event is lost");
    f.expect(bus.verify_accounting().has_value(), "balance");
    f.expect(bus.stop().left == 0, "stop");
    ::_exit(f.code());
  }
  int status = 0;
  unsigned stops = 0;
  for (; stops < rounds("RINGMAIN_STOPS", 200); ++stops) {
    ::kill(child, SIGSTOP);
    ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
    if (!WIFSTOPPED(status)) break;  // it was done before
    ::kill(child, SIGCONT);
  }
  EXPECT_GT(stops, 0u);
  if (WIFSTOPPED(status)) {
    EXPECT_EQ(ended(child), kFine) << stops << " stops";
  } else {
    EXPECT_EQ(in_words(status), kFine) << stops << " stops";
  }
}

TEST(ClockTest, NobodyLooksAtTheWallClockToWait) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer keeps the clock";
  wall_clock_looks = 0;
  clock_jumps = true;
  const auto jumped = std::chrono::system_clock::now();
  EXPECT_EQ(wall_clock_looks, 1) << "the clock of this test is not the one that is looked at";
  Door door;
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto box = bus.channel<Tock>().mailbox();
  Subscription stuck = ticks.subscribe([&door](const Tick&) { EXPECT_TRUE(door.pass()); });
  PublisherOptions options;
  options.capacity_events = 1;
  options.overflow = Overflow::block;
  options.block_us_max = std::chrono::milliseconds(20);
  auto publisher = ticks.publisher(options).value();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(publisher.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(door.await_arrival());
  EXPECT_EQ(publisher.publish({2}), PublishCode::full);                          // 20 ms
  EXPECT_FALSE(box.wait_for(std::chrono::milliseconds(20)));                     // 40
  EXPECT_FALSE(bus.flush(std::chrono::milliseconds(20)));                        // 60
  EXPECT_EQ(stuck.reset_for(std::chrono::milliseconds(20)), Detached::timeout);  // 80
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(80));
  door.open();
  EXPECT_EQ(stuck.reset(), Detached::done);
  EXPECT_EQ(bus.stop().left, 0u);
  clock_jumps = false;
  EXPECT_EQ(wall_clock_looks, 1) << "since " << jumped.time_since_epoch().count();
}

TEST(TwoBusesTest, CallbacksOfOneUseTheOtherAndNeitherWaits) {
  for (int order = 0; order < 2; ++order) {
    auto a = std::make_unique<Bus>(with_workers(1));
    auto b = std::make_unique<Bus>(with_workers(1));
    auto to_a = a->channel<Tick>().publisher();
    auto to_b = b->channel<Tick>().publisher();
    std::atomic<int> heard{0};
    Subscription last = b->channel<Tock>().subscribe([](const Tock&) {});
    Subscription on_a = a->channel<Tick>().subscribe([&](const Tick& t) {
      ++heard;
      if (t.n == 1) {
        EXPECT_FALSE(b->flush(kForEver));
        EXPECT_TRUE(b->stop(StopMode::drain, kForEver).refused);
        EXPECT_EQ(last.reset(), Detached::deferred);
      }
      if (t.n == 1000) return;
      EXPECT_TRUE(to_b.publish({t.n + 1}));
    });
    Subscription on_b = b->channel<Tick>().subscribe([&](const Tick& t) {
      ++heard;
      if (t.n == 1000) return;
      EXPECT_FALSE(a->flush(kForEver));
      EXPECT_TRUE(to_a.publish({t.n + 1}));
    });
    ASSERT_TRUE(to_a.publish({1}));
    EXPECT_TRUE(eventually([&] { return heard == 1000; }));
    EXPECT_EQ(last.wait_quiescent(kLong), Detached::done);
    EXPECT_TRUE(a->flush(kLong) && b->flush(kLong));
    EXPECT_TRUE(a->verify_accounting().has_value() && b->verify_accounting().has_value());
    (order == 0 ? a : b).reset();
    EXPECT_EQ((order == 0 ? to_a : to_b).publish({9}), PublishCode::closed);
    EXPECT_EQ((order == 0 ? to_b : to_a).publish({1000}), PublishCode::accepted);
    EXPECT_TRUE((order == 0 ? b : a)->flush(kLong));
    EXPECT_EQ(heard, 1001);
  }
}

}  // namespace
}  // namespace ringmain::tests
