// Is the source whole when memory runs out while it is attached? Each allocation of an attach()
// fails once. Required: no crash, and either it is attached, or CUPTI's place is free again.
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/traced.hpp"

#include "tests/adapters/cuda/source_fixture.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::cuda {
namespace {

using tests::allocations_living;
using tests::fail_allocations;
using tests::heal_allocations;

class SourceMemoryTest : public SourceFixture {};

/// False: the attach() came to its end before the `k`-th allocation.
bool attach_without(long k, cudaEvent_t event) {
  TestBus bus;
  const auto heard = bus.heard<EventRecord>();
  std::optional<Source> source;
  fail_allocations(k, 1);
  try {
    if (auto made = Source::attach(bus)) source = std::move(made).value();
  } catch (const std::bad_alloc&) {  // as it says
  }
  const bool reached = heal_allocations();
  (void)cudaEventRecord(event, nullptr);
  if (source) {
    EXPECT_EQ(source->detach(), Detached::done) << "allocation " << k;
  }
  EXPECT_EQ(Source::state_in_process(), std::nullopt) << "allocation " << k;
  EXPECT_EQ(fake_cupti_subscribers(), 0) << "allocation " << k;
  return reached;
}

TEST_F(SourceMemoryTest, EachAllocationOfAnAttachMayFail) {
  (void)attach_without(1L << 50, event);  // what is made once is there
  long k = 1;
  while (attach_without(k, event) && !testing::Test::HasFailure()) ++k;
  EXPECT_GT(k, 20) << "attach() allocates next to nothing: the test sees too little";
}

TEST_F(SourceMemoryTest, OneThatEndsInACallbackWithoutMemoryGivesItsPlaceUp) {
  for (long k = 1; k <= 4; ++k) {
    auto source = std::make_unique<Source>();
    const auto ender = bus.channel<EventRecord>().subscribe([&](const EventRecord&) {
      fail_allocations(k, 1000);
      source.reset();
      (void)heal_allocations();
    });
    *source = attached(bus);
    record();
    bus.deliver();
    Source next = attached(bus);
    EXPECT_EQ(fake_cupti_subscribers(), 1);
  }
}

TEST_F(SourceMemoryTest, AThreadsFirstCallMayFindNoMemory) {
  auto& channel = bus.channel<EventRecord>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  long k = 1;
  bool failed = true;
  for (; failed; ++k) {
    for (const long width : {1L, 1L << 40}) {  // that allocation, or all from it on
      const Counts before = source.counts();
      const auto no_memory = channel.stats().no_memory;
      cudaError_t answer = cudaErrorUnknown;
      std::thread([&] {
        (void)cudaSetDevice(0);
        (void)cudaStreamSynchronize(nullptr);  // not heard: what the fake itself has for a thread
        fail_allocations(k, width);
        answer = cudaEventRecord(event, nullptr);
        failed = heal_allocations();
        (void)cudaEventRecord(event, nullptr);  // in the same thread, with memory
      }).join();
      EXPECT_EQ(answer, cudaSuccess) << "the program's call";
      const Counts now = source.counts();
      EXPECT_EQ(now.published + now.refused, before.published + before.refused + 2)
          << "allocation " << k;
      EXPECT_GT(now.published, before.published) << "the second one is heard, allocation " << k;
      EXPECT_EQ(channel.stats().no_memory - no_memory, now.refused - before.refused);
      if (width != 1) {
        EXPECT_EQ(now.refused - before.refused, failed ? 1 : 0) << "allocation " << k;
      }
    }
  }
  EXPECT_GT(k, 3) << "a thread's first call allocates next to nothing: the test sees too little";
  bus.deliver();
  EXPECT_EQ(heard.size(), source.counts().published);
}

TEST_F(SourceMemoryTest, AWrappedCallAllocatesNothingOnceItsThreadHasItsLane) {
  const auto heard = bus.heard<EventRecord>();
  const auto refused = bus.heard<CallRefused>();
  const Name why{"every second one"};
  unsigned asked = 0;
  const auto asks = bus.channel<CallBegin>().subscribe_inline(
      [&](const CallBegin&) { return ++asked % 2 == 0 ? Verdict::veto(why) : Verdict::allow(); });
  Source source = attached(bus);
  // Not CUDA that stands in, which allocates.
  ASSERT_TRUE(traced::replace(
      "cudaEventRecord",
      +[](traced::cudaEvent_t, traced::cudaStream_t) { return traced::cudaSuccess; }));
  const auto call = [&] {
    EXPECT_EQ(traced::cudaEventRecord(event, nullptr), traced::cudaSuccess);
    EXPECT_EQ(traced::cudaEventRecord(event, nullptr), traced::cudaErrorNotPermitted);
  };
  call();
  fail_allocations(1, 1L << 40);
  for (int i = 0; i < 100; ++i) call();
  EXPECT_FALSE(heal_allocations());
  traced::restore("cudaEventRecord");
  bus.deliver();
  EXPECT_EQ(heard.size(), 202);
  EXPECT_EQ(refused.size(), 101);
}

TEST_F(SourceMemoryTest, DetachingInCallbacksLeavesNoMoreBehind) {
  const auto blocks = [&](bool in_callback) {
    const auto once = [&] {
      Source source;
      auto heard = bus.channel<EventRecord>().subscribe([&](const EventRecord&) {
        if (in_callback) (void)source.detach();
      });
      source = attached(bus);
      record();
      bus.deliver();
      (void)source.detach();  // does what was left
      if (!in_callback) (void)bus.on_interest("cuda.source", [](std::string_view, Interest) {});
      heard.reset();
      bus.deliver();
    };
    for (int i = 0; i < 64; ++i) once();
    const long before = allocations_living();
    for (int i = 0; i < 64; ++i) once();
    return allocations_living() - before;
  };
  const long otherwise = blocks(false);
  EXPECT_LT(blocks(true), otherwise + 32);
}

}  // namespace
}  // namespace ringmain::cuda
