// What if there are more handles than the source has room for, and very many contexts? The
// process's first attach decides on the room, so each here asks for the smallest.
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

Options small() {
  return {.handles = Options::kHandlesMin};
}

class SourceFullTest : public SourceFixture {
 protected:
  /// `count` events, each told before the next is made.
  std::vector<cudaEvent_t> made(std::size_t count) {
    std::vector<cudaEvent_t> all(count);
    for (cudaEvent_t& each : all) {
      EXPECT_EQ(cudaEventCreate(&each), cudaSuccess);
      bus.deliver();
    }
    return all;
  }
  void destroy(const std::vector<cudaEvent_t>& all) {
    for (cudaEvent_t each : all) {
      EXPECT_EQ(cudaEventDestroy(each), cudaSuccess);
      bus.deliver();
    }
  }
};

TEST_F(SourceFullTest, WhatFindsNoRoomIsCountedAndTheRoomComesBack) {
  const auto creations = bus.heard<EventCreation>();
  const auto deletions = bus.heard<EventDeletion>();
  const auto said = bus.heard<SourceNotice>();
  Source source = attached(bus, small());
  constexpr std::size_t kMany = 3 * Options::kHandlesMin;
  std::set<std::pair<std::uint64_t, std::uint32_t>> lives;
  std::size_t all_unkept = 0;
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = creations.size();
    destroy(made(kMany));
    ASSERT_EQ(creations.size(), before + kMany);
    ASSERT_EQ(deletions.size(), creations.size());
    std::size_t unkept = 0;
    for (std::size_t i = before; i < before + kMany; ++i) {
      if (creations[i].generation == 0)
        ++unkept;
      else
        EXPECT_TRUE(lives.emplace(creations[i].event, creations[i].generation).second);
      EXPECT_EQ(deletions[i].event, creations[i].event);
      EXPECT_EQ(deletions[i].generation, creations[i].generation);
    }
    EXPECT_EQ(unkept, kMany - Options::kHandlesMin) << "the table is full, and empty in each round";
    all_unkept += unkept;
    EXPECT_EQ(source.counts().unkept, all_unkept);
  }
  destroy(made(1));
  EXPECT_GT(creations.back().generation, 0);
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(said.back().unkept, all_unkept);
}

TEST_F(SourceFullTest, AReleaseThatFailsOfWhatFoundNoRoomIsNoOther) {
  const auto deletions = bus.heard<EventDeletion>();
  Source source = attached(bus, small());
  const auto all = made(2 * Options::kHandlesMin);
  cudaEvent_t last = all.back();
  fake_cuda_fail("cudaEventDestroy", 1, 1);
  ASSERT_NE(cudaEventDestroy(last), cudaSuccess);
  bus.deliver();
  ASSERT_EQ(deletions.size(), 2);
  EXPECT_EQ(deletions[0].generation, 0);
  EXPECT_EQ(deletions[1].phase, Phase::failed);
  EXPECT_EQ(deletions[1].generation, 0);
  const auto unkept = source.counts().unkept;
  destroy(all);
  EXPECT_EQ(source.counts().unkept, unkept) << "a release makes nothing";
}

TEST_F(SourceFullTest, AHundredThousandContextsComeAndGo) {
  auto told = bus.heard<ContextEvent>();
  auto creations = bus.heard<EventCreation>();
  Source source = attached(bus, small());
  std::uint64_t changes = 0, wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    CUcontext context = nullptr;
    CUevent left = nullptr;
    (void)cuCtxCreate_v4(&context, nullptr, 0, 0);
    (void)cuEventCreate(&left, 0);  // goes with its context
    (void)cuCtxDestroy_v2(context);
    bus.deliver();
    changes += told.size();
    for (const ContextEvent& each : told)
      wrong += each.handle != reinterpret_cast<std::uintptr_t>(context) || each.device != 0 ? 1 : 0;
    for (const EventCreation& each : creations)
      wrong += each.device != 0 || each.generation == 0 || each.context == 0 ? 1 : 0;
    wrong += creations.size() == 1 ? 0 : 1;
    told.clear();
    creations.clear();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(changes, 200'000);
  EXPECT_EQ(source.counts().unkept, 0);
  EXPECT_EQ(source.counts().refused, 0);
  (void)cudaSetDevice(0);
}

}  // namespace
}  // namespace ringmain::cuda
