// What if more is open than there is room for, and if communicators come and go, many at once?
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginRoomTest : public PluginFixture {
 protected:
  PluginRoomTest() {
    all = bus.subscribe("nccl.*", [](const EventView&) {});
  }
  PluginTable table{6};
  Subscription all;
};

TEST_F(PluginRoomTest, ThereIsRoomForSoManyAndWhatComesMoreIsCounted) {
  attach();
  Driver nccl(table);
  std::vector<void*> open;
  for (;;) {
    void* const one = nccl.plan();
    if (one == nullptr) break;
    open.push_back(one);
    ASSERT_LE(open.size(), 65536);
  }
  EXPECT_EQ(open.size(), 65536);
  EXPECT_GE(counts().no_room, 1);
  nccl.stop(nccl.coll(nullptr, nullptr));  // of a parent that has no handle: none either
  for (std::size_t i = 0; i < open.size(); i += 2) nccl.stop(open[i]);
  EXPECT_NE(nccl.proxy_op(nullptr, 0), nullptr);
  nccl.finalize();
  const Counts now = counts();
  EXPECT_EQ(now.started, now.stopped + now.aborted);
}

TEST_F(PluginRoomTest, WhatOneThreadHasOpenIsNotInTheWayOfAnother) {
  attach();
  Driver nccl(table);
  constexpr std::uint64_t kThreads = 24, kEach = 2000;  // half of what there is room for
  std::vector<void*> open[kThreads];
  for (auto& own : open) {
    std::thread([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) own.push_back(nccl.plan());
    }).join();
  }
  EXPECT_EQ(counts().no_room, 0);
  EXPECT_EQ(counts().started, kThreads * kEach);
  for (const auto& own : open) {
    for (void* const one : own) nccl.stop(one);
  }
  EXPECT_EQ(counts().stopped, kThreads * kEach);
}

TEST_F(PluginRoomTest, CommunicatorsComeAndGoAnyNumberOfTimes) {
  auto notices = bus.heard<PluginNotice>();
  attach();
  for (int i = 0; i < 1200; ++i) {
    Driver nccl(table);
    ASSERT_NE(nccl.context, nullptr);
    nccl.stop(nccl.plan());
  }
  EXPECT_EQ(counts().started, 1200);
  std::vector<std::unique_ptr<Driver>> many;
  for (int i = 0; i < 513; ++i) many.push_back(std::make_unique<Driver>(table));
  EXPECT_NE(many[511]->context, nullptr);
  EXPECT_EQ(many[512]->context, nullptr);  // and NCCL was told success
  many.clear();
  bus.deliver();
  std::size_t limited = 0;
  for (const PluginNotice& one : notices) limited += one.state == PluginState::limited ? 1 : 0;
  EXPECT_EQ(limited, 1);
  EXPECT_EQ(notices.back().communicators, 0);
}

TEST_F(PluginRoomTest, ManyThreadsInitializeAtOnce) {
  attach();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Driver>> all(8);
    std::vector<std::thread> threads;
    for (auto& one : all) threads.emplace_back([&] { one = std::make_unique<Driver>(table); });
    for (auto& thread : threads) thread.join();
    std::set<void*> contexts;
    for (const auto& one : all) contexts.insert(one->context);
    EXPECT_EQ(contexts.size(), 8);
    EXPECT_FALSE(contexts.contains(nullptr));
  }
}

}  // namespace
}  // namespace ringmain::nccl
