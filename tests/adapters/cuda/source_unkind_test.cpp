// Does the source bear what comes at the wrong moment: hearers that ask for it while it is being
// refused or lost, a bus that is gone, releases that fail, ends that nobody heard?
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

class SourceUnkindTest : public SourceFixture {
 protected:
  /// Asks for the process's source at each notice, as ringmain.torch does.
  Subscription asker() {
    return bus.channel<SourceNotice>().subscribe_inline([this](const SourceNotice& notice) {
      if (notice.state != told) return;
      found = Source::state_in_process();
      ++asked;
    });
  }
  SourceState told = SourceState::unavailable;
  std::optional<SourceState> found;
  int asked = 0;
};

TEST_F(SourceUnkindTest, AHearerMayAskForTheSourceThatIsRefused) {
  const auto asking = asker();
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"})
    fake_cupti_answer(function, 39, 1, "Kineto");
  EXPECT_FALSE(Source::attach(bus));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found, std::nullopt);
}

TEST_F(SourceUnkindTest, AHearerMayAskForTheSourceThatIsLost) {
  told = SourceState::lost;
  const auto asking = asker();
  Source source = attached(bus);
  fake_cupti_answer("cuptiGetCallbackState", 15, 1000, nullptr);
  EXPECT_EQ(source.state(), SourceState::lost);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found, SourceState::lost);
}

TEST_F(SourceUnkindTest, ItMayBeDetachedInACallbackAfterItsBus) {
  auto first = std::make_unique<Bus>();
  Source source = attached(*first);
  first.reset();
  std::optional<Detached> answer;
  const auto heard =
      bus.channel<EventRecord>().subscribe([&](const EventRecord&) { answer = source.detach(); });
  (void)bus.channel<EventRecord>().publish({});
  bus.deliver();
  EXPECT_EQ(answer, Detached::deferred);
  EXPECT_EQ(source.detach(), Detached::was_not_attached);  // and does what was left
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceUnkindTest, WhatWasRefusedMayBeTakenBackLater) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  ASSERT_TRUE(source.lend("torch.profiler").value());
  fake_cupti_answer("cuptiEnableCallback", 35, 1000, nullptr);
  EXPECT_FALSE(source.take_back());
  EXPECT_EQ(source.state(), SourceState::lent);
  fake_cupti_answer("cuptiEnableCallback", 0, 0, nullptr);
  const auto back = source.take_back();
  ASSERT_TRUE(back);
  EXPECT_TRUE(back.value());
  record();
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceUnkindTest, AReleaseOfADeadHandleDoesNotReviveIt) {
  const auto heard = bus.heard<EventDeletion>();
  const auto recorded = bus.heard<EventRecord>();
  Source source = attached(bus);
  cudaEvent_t twice = nullptr;
  ASSERT_EQ(cudaEventCreate(&twice), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(twice), cudaSuccess);
  ASSERT_NE(cudaEventDestroy(twice), cudaSuccess);
  ASSERT_NE(cudaEventRecord(twice, nullptr), cudaSuccess);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(heard.size(), 3);
  EXPECT_GT(heard[0].generation, 0);
  EXPECT_EQ(heard[1].generation, 0);
  EXPECT_EQ(heard[2].phase, Phase::failed);
  EXPECT_EQ(heard[2].generation, 0);
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_EQ(recorded[0].generation, 0);
}

TEST_F(SourceUnkindTest, AContextTakesHandlesAlongThatNobodyHeardOf) {
  const auto recorded = bus.heard<EventRecord>();
  Source source = attached(bus);
  CUcontext context = nullptr;
  CUevent orphan = nullptr;
  ASSERT_EQ(cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&orphan, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  (void)cudaSetDevice(0);
  (void)cuEventRecord(orphan, nullptr);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_EQ(recorded[0].generation, 0) << "it went with its context";
}

TEST_F(SourceUnkindTest, ADeviceThatCuptiDoesNotSayIsAskedForAgain) {
  fake_cupti_answer("cuptiGetDeviceId", 999, 2, nullptr);
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  for (int i = 0; i < 3; ++i) record();
  bus.deliver();
  ASSERT_EQ(heard.size(), 3);
  EXPECT_EQ(heard[1].device, kNoDevice);
  EXPECT_EQ(heard[2].device, 0);
}

TEST_F(SourceUnkindTest, AContextIsNotGivenACallThatIsOver) {
  Bus live;
  std::string api = "none was told";
  const auto contexts = live.channel<ContextEvent>().subscribe_inline(
      [&](const ContextEvent& e) { api = e.api.view(); });
  auto records = live.channel<EventRecord>().subscribe_inline([](const EventRecord&) {});
  Source source = attached(live);
  struct With {
    Bus& bus;
    Subscription& records;
  } with{live, records};
  fake_cuda_during(
      "cudaEventRecord",
      [](void* given) {
        (void)static_cast<With*>(given)->records.reset();
        (void)static_cast<With*>(given)->bus.wait_told(std::chrono::minutes(10));
      },
      &with);
  record();  // its exit is not heard
  records = live.channel<EventRecord>().subscribe_inline([](const EventRecord&) {});
  ASSERT_TRUE(live.wait_told(std::chrono::minutes(10)));
  fake_cuda_raise_resource(1, nullptr, nullptr);
  EXPECT_EQ(api, "");
}

}  // namespace
}  // namespace ringmain::cuda
