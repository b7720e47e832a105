// Is CUPTI left alone once the process ends, and does the process end as it would alone? Each test
// ends a process of its own.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <pthread.h>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

constexpr auto kLong = std::chrono::minutes(10);

class SourceExitTest : public SourceFixture {
 protected:
  // A process that had no source yet: a forked child of one cannot have any.
  SourceExitTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// What follows is of the process that ends, and is never destroyed.
std::atomic<std::uint64_t> asked{0};  // of CUPTI
std::atomic<bool> ending_begins{false}, asks{false}, answered{false};

/// In the housekeeper, in a question of CUPTI's. Ends a while after the process's end has begun.
void answer_late(void*) {
  if (asks.exchange(true)) return;
  while (!ending_begins) std::this_thread::yield();
  // Some milliseconds of work; yielding would make it last as long as the machine is busy.
  for (int i = 0; i < 3'000'000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  answered = true;
}

Bus& live() {
  static Bus* const bus = new Bus;
  return *bus;
}
Source& source() {
  static auto* const source = [] {
    auto made = Source::attach(live());
    if (!made) std::_Exit(90);
    return new Source(std::move(made).value());
  }();
  return *source;
}

TEST_F(SourceExitTest, TheEndWaitsForAQuestionUnderWay) {
  EXPECT_EXIT(
      {
        (void)std::atexit([] { std::_Exit(answered ? 0 : 91); });  // after the source's own
        (void)source();
        (void)std::atexit([] { ending_begins = true; });  // before it
        fake_cupti_during("cuptiGetCallbackState", &answer_late, nullptr);
        while (!asks) std::this_thread::yield();  // it looks after itself
        std::exit(92);
      },
      testing::ExitedWithCode(0), "");
}

/// Destroyed after the source and its bus.
struct CallsAtTheEnd {
  cudaEvent_t event = nullptr;
  int heard = 0;
  ~CallsAtTheEnd() {
    const auto delivered = fake_cupti_delivered();
    fake_cupti_deliver_late(2);
    if (cudaEventRecord(event, nullptr) != cudaSuccess) std::_Exit(93);
    if (fake_cupti_delivered() != delivered + 2) std::_Exit(94);
    std::_Exit(heard == 1 ? 0 : 95);
  }
};

TEST_F(SourceExitTest, CallsThatComeAtTheEndAreHarmless) {
  EXPECT_EXIT(
      {
        static CallsAtTheEnd last;
        last.event = event;
        static Bus ended;
        static auto made = Source::attach(ended);
        if (!made) std::_Exit(90);
        static auto heard =
            ended.channel<EventRecord>().subscribe_inline([](const EventRecord&) { ++last.heard; });
        if (!ended.wait_told(kLong)) std::_Exit(91);
        record();
        std::exit(92);
      },
      testing::ExitedWithCode(0), "");
}

/// The process's first attach, which finds CUPTI. It is looked for again after a failure.
TEST_F(SourceExitTest, AVersionThatCuptiDoesNotSayIsAskedForAgain) {
  EXPECT_EXIT(
      {
        const auto refused_by = [&](const char* sentence) {
          const auto refused = Source::attach(live());
          return !refused && refused.error().message.find(sentence) != std::string::npos;
        };
        fake_cupti_answer("cuptiGetVersion", 999, 2, nullptr);
        if (!refused_by("does not start: CUPTI_ERROR_UNKNOWN (999)")) std::_Exit(90);
        fake_cupti_answer("cuptiGetResultString", 1, 1, nullptr);
        if (!refused_by("does not start: CUPTI's error (999)")) std::_Exit(91);
        fake_cupti_version(17);
        if (!refused_by("is too old (its version is 17)")) std::_Exit(92);
        fake_cupti_version(130001);
        if (source().state() != SourceState::attached) std::_Exit(93);
        std::_Exit(source().detach() == Detached::done ? 0 : 94);
      },
      testing::ExitedWithCode(0), "");
}

/// As static objects and other libraries may call, after the source knows of the end.
void use_all_after_the_end() {
  const auto heard = live().channel<EventRecord>().subscribe([](const EventRecord&) {});
  if (!live().wait_told(kLong)) std::_Exit(91);
  if (source().state() != SourceState::attached) std::_Exit(92);
  if (source().lend("nobody")) std::_Exit(93);
  if (source().detach() != Detached::done) std::_Exit(94);
  if (Source::attach(live())) std::_Exit(95);
  std::_Exit(fake_cupti_asked() == asked ? 0 : 96);
}

TEST_F(SourceExitTest, NothingIsAskedOfCuptiAfterTheEndBegan) {
  EXPECT_EXIT(
      {
        (void)std::atexit(&use_all_after_the_end);
        (void)source();
        (void)live().wait_told(kLong);
        asked = fake_cupti_asked();
        std::exit(97);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(SourceExitTest, WhoEndsTheProcessInsideAQuestionDoesNotWaitForItself) {
  EXPECT_EXIT(
      {
        (void)source();
        // The bus's housekeeper asks, too, and this thread does not while that does.
        static const std::thread::id asks = std::this_thread::get_id();
        fake_cupti_script(
            [](const char* function, void*) {
              if (std::this_thread::get_id() == asks &&
                  std::string_view(function) == "cuptiGetCallbackState")
                std::exit(3);
              return 0;
            },
            nullptr);
        for (;;) (void)source().state();
      },
      testing::ExitedWithCode(3), "");
}

/// Eight threads that call CUDA until the process is gone, each heard in its thread.
void call_on_eight_threads() {
  static std::atomic<int> heard{0};
  static const auto* const subscription = new Subscription(
      live().channel<EventRecord>().subscribe_inline([](const EventRecord&) { ++heard; }));
  (void)subscription;
  (void)source();
  for (int i = 0; i < 8; ++i) {
    std::thread([] {
      cudaEvent_t event = nullptr;
      (void)cudaSetDevice(0);
      (void)cudaEventCreate(&event);
      for (;;) (void)cudaEventRecord(event, nullptr);
    }).detach();
  }
  while (heard < 1000) std::this_thread::yield();
}

TEST_F(SourceExitTest, WithCallsInFlightEachEndIsThePrograms) {
  const auto exits = testing::ExitedWithCode(7);
  EXPECT_EXIT((call_on_eight_threads(), std::exit(7)), exits, "");
  EXPECT_EXIT((call_on_eight_threads(), std::quick_exit(7)), exits, "");
  EXPECT_EXIT((call_on_eight_threads(), std::_Exit(7)), exits, "");
  EXPECT_EXIT((call_on_eight_threads(), std::abort()), testing::KilledBySignal(SIGABRT), "");
}

TEST_F(SourceExitTest, ASubscriberThatEndsItsThreadInsideACallIsNamed) {
  EXPECT_EXIT(
      {
        const auto heard = live().channel<EventRecord>().subscribe_inline(
            [](const EventRecord&) { pthread_exit(nullptr); }, {.name = "leaver"});
        (void)source();
        record();
      },
      testing::KilledBySignal(SIGABRT), "callback 'leaver' ended its thread");
}

}  // namespace
}  // namespace ringmain::cuda
