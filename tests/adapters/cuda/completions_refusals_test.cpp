// What cannot be armed has one answer each, a driver that fails or is late leaves no ticket without
// an end, and what is done is nobody else's business.
#include <atomic>
#include <string>
#include <thread>

#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/completions_fixture.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;
using tests::Door;
using tests::eventually;

constexpr int kCan64BitStreamMemOps = 122;

class CompletionsRefusalsTest : public CompletionsFixture {};

TEST_F(CompletionsRefusalsTest, AnEmptyOneAnswers) {
  Completions empty;
  EXPECT_EQ(empty.arm(stream, 1).code, ArmCode::ended);
  EXPECT_EQ(empty.arm_after_launch(nullptr, stream, 1).code, ArmCode::ended);
  EXPECT_FALSE(empty.add_host_node(nullptr, {}, 1));
  EXPECT_EQ(empty.end(minutes(1)), Detached::was_not_attached);
  EXPECT_EQ(empty.figures().armed, 0U);
}

TEST_F(CompletionsRefusalsTest, NumbersOutsideOfTheirLimitsAreNamed) {
  const auto wrong = [this](const CompletionsOptions& options, const char* name) {
    const auto made = Completions::make(bus, options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Error::Code::refused);
    EXPECT_NE(made.error().message.find(name), std::string::npos) << made.error().message;
  };
  wrong({.lanes_max = 0}, "lanes_max");
  wrong({.lanes_max = 65536}, "lanes_max");
  wrong({.lane_tickets = 1}, "lane_tickets");
  wrong({.capacity_events = 0}, "capacity_events");
  wrong({.sleep_us_max = microseconds(0)}, "sleep_us_max");
  wrong({.watch_us = microseconds(0)}, "watch_us");
  wrong({.beyond_ns = nanoseconds(-1)}, "beyond_ns");
  wrong({.strategy = static_cast<Strategy>(4)}, "strategy");
}

TEST_F(CompletionsRefusalsTest, AThreadWithoutAContextIsToldToMakeOne) {
  std::thread([this] {
    const auto made = Completions::make(bus);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Error::Code::refused);
    EXPECT_NE(made.error().message.find("cudaFree(0)"), std::string::npos) << made.error().message;
  }).join();
}

TEST_F(CompletionsRefusalsTest, ADeviceWithoutMemoryWritesIsAskedByEvents) {
  fake_cuda_attribute(kCan64BitStreamMemOps, 0);
  const auto refused = Completions::make(bus, {.strategy = Strategy::memory_writes});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("event_queries"), std::string::npos);
  const Heard heard(bus);
  Completions completions = made();
  EXPECT_EQ(completions.figures().strategy, Strategy::event_queries);
  ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].mechanism, Mechanism::event_query);
}

TEST_F(CompletionsRefusalsTest, MemoryThatCannotBePinnedIsNoLossEither) {
  for (const char* function : {"cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2"}) {
    fake_cuda_fail(function, 1, 1);
    const Completions completions = made();
    EXPECT_EQ(completions.figures().strategy, Strategy::event_queries) << function;
  }
}

TEST_F(CompletionsRefusalsTest, AStreamOfAnotherContextIsRefused) {
  Completions completions = made();
  ASSERT_TRUE(completions.arm(nullptr, 1));  // so that it has a lane
  CUcontext other = nullptr, own = nullptr;
  cuCtxGetCurrent(&own);
  ASSERT_EQ(code(cuCtxCreate_v4(&other, nullptr, 0, 0)), 0);
  CUstream theirs = nullptr;
  ASSERT_EQ(code(cuStreamCreate(&theirs, 0)), 0);
  EXPECT_EQ(completions.arm(theirs, 1).code, ArmCode::other_context);
  EXPECT_EQ(completions.arm(nullptr, 1).code, ArmCode::other_context);  // its default stream
  cuCtxSetCurrent(own);
  EXPECT_EQ(completions.arm(theirs, 1).code, ArmCode::other_context);
  cuCtxDestroy_v2(other);
  EXPECT_EQ(completions.figures().armed, 1U);
}

TEST_F(CompletionsRefusalsTest, WhicheverContextIsCurrentItsEventsAreOfItsOwn) {
  const Heard heard(bus);
  Completions completions = made({.strategy = Strategy::event_queries, .lane_tickets = 2});
  CUcontext other = nullptr, own = nullptr, current = nullptr;
  cuCtxGetCurrent(&own);
  ASSERT_EQ(code(cuCtxCreate_v4(&other, nullptr, 0, 0)), 0);
  ASSERT_TRUE(completions.arm(stream, 1));
  cuCtxGetCurrent(&current);
  EXPECT_EQ(current, other);
  ASSERT_TRUE(heard.await(1));
  cuCtxDestroy_v2(other);
  cuCtxSetCurrent(own);
  for (std::size_t tag = 2; tag <= 5; ++tag) {  // each place in the lane, and once more
    ASSERT_TRUE(eventually([&] { return static_cast<bool>(completions.arm(stream, tag)); }));
    ASSERT_TRUE(heard.await(tag));
    EXPECT_EQ(heard.all()[tag - 1].outcome, Outcome::completed);
  }
  expect_balanced(completions, heard);
}

TEST_F(CompletionsRefusalsTest, AStreamThatIsDestroyedIsRefusedWithTheDriversAnswer) {
  Completions completions = made();
  cudaStream_t gone = nullptr;
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  const Armed armed = completions.arm(gone, 1);
  EXPECT_EQ(armed.code, ArmCode::driver);
  EXPECT_EQ(armed.result, 400);
  EXPECT_EQ(completions.figures().arms[static_cast<int>(ArmCode::driver)], 1U);
}

TEST_F(CompletionsRefusalsTest, AnErrorThatCameWhileNothingWasArmedIsFoundAllTheSame) {
  Completions completions = made();
  fake_cuda_break(719);
  const Armed first = completions.arm(stream, 1);
  EXPECT_FALSE(first);
  EXPECT_EQ(first.result, 719);
  EXPECT_TRUE(eventually([&] { return completions.figures().result == 719; }));
  const Armed later = completions.arm(stream, 2);
  EXPECT_EQ(later.code, ArmCode::lost);
  EXPECT_EQ(later.result, 719);
  reset_device();
}

TEST_F(CompletionsRefusalsTest, NodesThatTheDriverRefusesTakeNobodysPlace) {
  const Heard heard(bus);
  Completions completions = made();
  for (int i = 0; i < 65537; ++i) ASSERT_FALSE(completions.add_host_node(this, {}, 1));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphCreate(&graph, 0);
  const auto one = completions.add_host_node(graph, {}, 1);
  ASSERT_TRUE(one) << one.error().message;
  const auto two = completions.add_host_node(graph, {}, 2);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_NE(one.value().lane, two.value().lane);
  cudaGraphInstantiate(&exec, graph, 0);
  ASSERT_EQ(code(cudaGraphLaunch(exec, stream)), 0);
  ASSERT_TRUE(heard.await(2));
  expect_balanced(completions, heard);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(CompletionsRefusalsTest, ThreadsHaveDefaultStreamsOfTheirOwnAndShareTheLegacyOne) {
  const Heard heard(bus);
  Completions completions = made();
  auto* const per_thread = reinterpret_cast<void*>(std::uintptr_t{2});
  const auto both = [&] {
    (void)cudaSetDevice(0);
    EXPECT_TRUE(completions.arm(per_thread, 1));
    EXPECT_TRUE(completions.arm(nullptr, 2));
  };
  both();
  std::thread(both).join();
  ASSERT_TRUE(heard.await(4));
  EXPECT_EQ(completions.figures().lanes, 4U);
  expect_balanced(completions, heard);
}

TEST_F(CompletionsRefusalsTest, InsideACallbackOfCuptisNothingIsArmedOrMade) {
  Completions completions = made();
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  std::atomic<int> inside{0};
  const auto heard = bus.channel<StreamCreation>().subscribe_inline([&](const StreamCreation&) {
    inside += completions.arm(nullptr, 1).code == ArmCode::forbidden;
    inside += !Completions::make(bus);
    inside += !completions.add_host_node(this, {}, 1);
  });
  ASSERT_TRUE(bus.wait_told(minutes(10)));
  cudaStream_t made_here = nullptr;
  cudaStreamCreate(&made_here);
  EXPECT_EQ(inside, 3);
  cudaStreamDestroy(made_here);
}

TEST_F(CompletionsRefusalsTest, ItsOwnCallsAreNotTold) {
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  std::atomic<int> calls{0};
  const auto records = bus.channel<EventRecord>().subscribe([&](const EventRecord&) { ++calls; });
  const auto events = bus.channel<EventCreation>().subscribe([&](const auto&) { ++calls; });
  const auto streams = bus.channel<StreamCreation>().subscribe([&](const auto&) { ++calls; });
  const auto deletions = bus.channel<EventDeletion>().subscribe([&](const auto&) { ++calls; });
  const auto memory = bus.channel<MemoryAllocation>().subscribe([&](const auto&) { ++calls; });
  ASSERT_TRUE(bus.wait_told(minutes(10)));
  for (const Strategy strategy : {Strategy::memory_writes, Strategy::event_queries}) {
    const Heard heard(bus);
    Completions completions = made({.strategy = strategy});
    ASSERT_TRUE(completions.arm(stream, 1));
    ASSERT_TRUE(heard.await(1));
  }
  ASSERT_TRUE(bus.flush(minutes(10)));
  EXPECT_EQ(calls, 0);
  cudaEvent_t own = nullptr;
  cudaEventCreate(&own);  // what the program calls is told all the same
  cudaEventRecord(own, stream);
  ASSERT_TRUE(bus.flush(minutes(10)));
  EXPECT_EQ(calls, 2);
  cudaEventDestroy(own);
}

/// A door in the middle of a call of the driver's.
struct Late {
  const char* function;
  Door door;
  std::atomic<bool> once{false};
  static int at(const char* name, void* with) {
    auto& late = *static_cast<Late*>(with);
    if (std::string_view(name) == late.function && !late.once.exchange(true)) late.door.pass();
    return -1;
  }
};

TEST_F(CompletionsRefusalsTest, WhoIsInTheDriverWhenItEndsGetsNoTicketAndItsWriteHarmsNothing) {
  const Heard heard(bus);
  Late late{"cuStreamWriteValue64_v2", {}, {}};
  Completions completions = made();
  fake_cuda_script(&Late::at, &late);
  Armed armed;
  std::thread arms([&] {
    (void)cudaSetDevice(0);
    armed = completions.arm(stream, 1);
  });
  ASSERT_TRUE(late.door.await_arrival());
  EXPECT_EQ(completions.end(milliseconds(0)), Detached::done);  // does not wait for that thread
  late.door.open();
  arms.join();
  EXPECT_EQ(armed.code, ArmCode::ended);
  EXPECT_EQ(completions.figures().armed, 0U);
  expect_balanced(completions, heard);
}

TEST_F(CompletionsRefusalsTest, OthersArmWhileOneIsInTheDriver) {
  const Heard heard(bus);
  Late late{"cuStreamWriteValue64_v2", {}, {}};
  Completions completions = made();
  fake_cuda_script(&Late::at, &late);
  std::thread arms([&] {
    (void)cudaSetDevice(0);
    EXPECT_TRUE(completions.arm(stream, 1));
  });
  ASSERT_TRUE(late.door.await_arrival());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(completions.arm(stream, 2));
  ASSERT_TRUE(heard.await(100));
  late.door.open();
  arms.join();
  ASSERT_TRUE(heard.await(101));
  expect_balanced(completions, heard);
}

TEST_F(CompletionsRefusalsTest, ADriverThatHoldsThePollerUpTimesTheEndOutAndAllIsSaidLater) {
  const Heard heard(bus);
  Late late{"cuStreamQuery", {}, {}};
  std::uint64_t held = 0;
  {
    Completions completions = made({.watch_us = microseconds(1), .beyond_ns = milliseconds(1)});
    fake_cuda_script(&Late::at, &late);
    held = fake_cuda_hold(stream);
    ASSERT_TRUE(completions.arm(stream, 1));
    ASSERT_TRUE(late.door.await_arrival());
    EXPECT_EQ(completions.end(milliseconds(0)), Detached::timeout);
    EXPECT_EQ(heard.size(), 0U);
  }
  late.door.open();
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::abandoned);
  fake_cuda_finish(held);
}

TEST_F(CompletionsRefusalsTest, ASubscriberMayEndItAndArmFromItsCallback) {
  Completions completions = made();
  std::atomic<int> heard{0};
  const auto hears = bus.channel<Completion>().subscribe([&](const Completion& told) {
    (void)cudaSetDevice(0);
    if (told.tag < 3) {
      EXPECT_TRUE(completions.arm(stream, told.tag + 1));
    } else {
      EXPECT_EQ(completions.end(minutes(10)), Detached::deferred);
    }
    ++heard;
  });
  ASSERT_TRUE(completions.arm(stream, 1));
  EXPECT_TRUE(eventually([&] { return heard == 3; }));
  EXPECT_EQ(completions.arm(stream, 9).code, ArmCode::ended);
}

TEST_F(CompletionsRefusalsTest, AThreadThatWaitsForTheStreamInCudaIsNotWaitedForInTurn) {
  const Heard heard(bus);
  Completions completions = made({.strategy = Strategy::host_functions});
  const std::uint64_t held = fake_cuda_hold(stream);
  for (std::uint64_t tag = 0; tag < 200; ++tag) ASSERT_TRUE(completions.arm(stream, tag));
  std::thread frees([] {
    void* pointer = nullptr;
    (void)cudaSetDevice(0);
    EXPECT_EQ(code(cudaMalloc(&pointer, 512)), 0);
    EXPECT_EQ(code(cudaFree(pointer)), 0);  // waits for all host functions
  });
  fake_cuda_finish(held);
  frees.join();
  ASSERT_TRUE(heard.await(200));
  expect_balanced(completions, heard);
}

TEST_F(CompletionsRefusalsTest, ABusThatStopsIsNoHarm) {
  Bus short_lived;
  auto completions = Completions::make(short_lived);
  ASSERT_TRUE(completions);
  std::atomic<int> heard{0};
  const auto hears =
      short_lived.channel<Completion>().subscribe([&](const Completion&) { ++heard; });
  ASSERT_TRUE(completions.value().arm(stream, 1));
  EXPECT_TRUE(eventually([&] { return heard == 1; }));
  (void)short_lived.stop();
  ASSERT_TRUE(completions.value().arm(stream, 2));
  EXPECT_EQ(completions.value().end(minutes(10)), Detached::done);
  EXPECT_EQ(completions.value().figures().completed, 2U);
  EXPECT_EQ(completions.value().figures().refused, 1U);
}

TEST_F(CompletionsRefusalsTest, ASlowSubscriberLosesNothing) {
  Completions completions = made({.lane_tickets = 2, .capacity_events = 4});
  Door door;
  std::atomic<int> heard{0};
  const auto hears = bus.channel<Completion>().subscribe([&](const Completion&) {
    if (heard++ == 0) door.pass();
  });
  int armed = 0;
  EXPECT_TRUE(eventually([&] {
    const Armed one = completions.arm(stream, 1);
    armed += one ? 1 : 0;
    return one.code == ArmCode::full && completions.figures().completed >= 4;
  }));
  door.open();
  EXPECT_TRUE(eventually([&] { return heard == armed; }));
  EXPECT_EQ(completions.figures().refused, 0U);
}

TEST_F(CompletionsRefusalsTest, AnEndThatASubscriberHoldsUpLosesNothing) {
  Completions completions =
      made({.lane_tickets = 64, .capacity_events = 4, .beyond_ns = milliseconds(1)});
  Door door;
  std::atomic<int> heard{0};
  const auto hears = bus.channel<Completion>().subscribe([&](const Completion&) {
    if (heard++ == 0) door.pass();
  });
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(completions.end(milliseconds(0)), Detached::timeout);
  door.open();
  EXPECT_TRUE(eventually([&] { return heard == 32; }));
  EXPECT_EQ(completions.figures().refused, 0U);
}

TEST_F(CompletionsRefusalsTest, ABusThatStopsWhileItIsFullHoldsNoEndUp) {
  Bus full;
  auto completions = Completions::make(full, {.lane_tickets = 64, .capacity_events = 4});
  ASSERT_TRUE(completions);
  Door door;
  std::atomic<int> heard{0};
  const auto hears = full.channel<Completion>().subscribe([&](const Completion&) {
    if (heard++ == 0) door.pass();
  });
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(completions.value().arm(stream, 1));
  ASSERT_TRUE(door.await_arrival());
  std::thread stops([&] { (void)full.stop(); });
  EXPECT_TRUE(eventually([&] { return completions.value().figures().pending != 0; }));
  door.open();
  stops.join();
  EXPECT_EQ(completions.value().end(nanoseconds(-1)), Detached::done);
  EXPECT_EQ(completions.value().figures().completed, 32U);
}

}  // namespace
}  // namespace ringmain::cuda
