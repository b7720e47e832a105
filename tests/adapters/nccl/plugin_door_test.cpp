// What does a process say at its door of what its NCCL operations wait for, without anybody who
// listens, and without a word more than is known?
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "bus/core/door_words.hpp"
#include "bus/door.hpp"

#include "adapters/sources/nccl/nccl_core.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/engine/door/door_rig.hpp"

namespace ringmain::nccl {
namespace {

using engine::door::tests::Folder;

/// Without blanks and ends of lines.
std::string stalled() {
  ringmain::detail::DoorWords words;
  engine::door::Reply reply;
  words.answer("stalled", reply);
  std::string text(reply.view());
  if (!text.starts_with('{')) return text;
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_NOT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

class PluginDoorTest : public PluginFixture {
 protected:
  void SetUp() override {
    auto made = open_door({folder.path()});
    if (!made) GTEST_SKIP() << made.error().message;
    door = std::move(made).value();
  }
  const Folder folder;
  Door door;
  PluginTable table{7};
  // And what their parents are.
  static constexpr std::uint64_t kAskedByDoor =
      abi::kColl | abi::kP2p | abi::kGroup | abi::kProxyOp | abi::kCollApi | abi::kP2pApi;
};

TEST_F(PluginDoorTest, ADoorAsksForOperationsAndProxiesAndForNoMoreThanItIsTold) {
  auto with = options();
  for (const auto& [door_asks, more] :
       {std::pair{DoorAsks::operations, std::uint64_t{0}},
        {DoorAsks::steps, std::uint64_t{abi::kProxyStep}},
        {DoorAsks::all, std::uint64_t{abi::kProxyStep | abi::kKernelCh}}}) {
    with.door = door_asks;
    attach(with);
    EXPECT_EQ(Driver(table).asked(), kAskedByDoor | more);
    (void)source.detach();
  }
  with.door = DoorAsks::never;
  attach(with);
  EXPECT_EQ(Driver(table).asked(), 0);
  EXPECT_SAYS(stalled(), R"("asked_for":[],"not_asked_for":["operations")");
}

TEST_F(PluginDoorTest, ADoorThatOpensLaterIsNoticedByTheNextCommunicator) {
  door.reset();
  attach();
  EXPECT_EQ(Driver(table).asked(), 0);
  auto again = open_door({folder.path()});
  ASSERT_TRUE(again);
  EXPECT_EQ(Driver(table).asked(), kAskedByDoor);
}

TEST_F(PluginDoorTest, NobodyIsToldOfWhatADoorAlonePays) {
  attach();
  Driver nccl(table);
  void* const proxy = nccl.proxy_op(nccl.enqueue(1), 0);
  nccl.stop(proxy);
  EXPECT_EQ(counts().published, 0);
  EXPECT_GT(counts().stopped, 0);
}

TEST_F(PluginDoorTest, AnOperationIsThereWithItsProxiesUntilTheyAreDone) {
  attach();
  Driver nccl(table);
  void* const proxy = nccl.proxy_op(nccl.enqueue(1), 5, 6, false);
  const std::string hangs = stalled();
  EXPECT_SAYS(hangs, R"("asked_for":["operations","proxies"])");
  EXPECT_SAYS(hangs, R"("not_asked_for":["proxy_steps","kernel_channels"])");
  EXPECT_SAYS(hangs, R"("operations":[{"func":"AllReduce","group":"0:default_pg","rank":3,)"
                     R"("reading":null,"last":null,"peer":null,"nccl_channel":null,"step":null,)");
  EXPECT_SAYS(hangs, R"("sequence":7,)");
  EXPECT_SAYS(hangs, R"("begun_channels":null)");
  EXPECT_SAYS(hangs, R"("proxies":[{"nccl_channel":5,"peer":6,"send":false}])");
  EXPECT_SAYS(hangs, R"("waiting":1,"unseen":0,"last":{"func":"AllReduce","sequence":7,)");
  EXPECT_SAYS(hangs, R"("sequences":{"AllReduce":7})");
  nccl.stop(proxy);
  EXPECT_SAYS(stalled(), R"("operations":[],"left_out":0)");
}

TEST_F(PluginDoorTest, WithStepsItSaysForWhomTheOldestWaits) {
  auto with = options();
  with.door = DoorAsks::steps;
  attach(with);
  Driver nccl(table);
  void* const proxy = nccl.proxy_op(nccl.enqueue(1), 1, 2, false);
  nccl.record(nccl.step(proxy, 3), abi::kRecvWait);
  EXPECT_SAYS(stalled(), R"("reading":"peer_or_network","last":"recv_wait","peer":2,)"
                         R"("nccl_channel":1,"step":3,)");
}

TEST_F(PluginDoorTest, WithKernelsItSaysWhetherTheyHaveBegun) {
  auto with = options();
  with.door = DoorAsks::all;
  attach(with);
  Driver nccl(table, "dp", 2, 1, 1);
  void* const first = nccl.enqueue(2);
  (void)nccl.enqueue(2);
  (void)nccl.kernel(first, 0, 10);
  const std::string hangs = stalled();
  EXPECT_SAYS(hangs, R"("waiting":2,"unseen":0)");
  EXPECT_LT(hangs.find(R"("reading":"kernel_running")"), hangs.find(R"("reading":"not_begun")"));
  EXPECT_SAYS(hangs, R"("begun_channels":1,"ended_channels":0)");
}

TEST_F(PluginDoorTest, WhatNothingShowsTheEndOfIsCountedAndNotSaidToHang) {
  attach();
  Driver nccl(table, "dp", 2, 1, 1);
  for (int i = 0; i < 3; ++i) (void)nccl.enqueue(2);
  const std::string said = stalled();
  EXPECT_SAYS(said, R"("waiting":0,"unseen":3)");
  EXPECT_SAYS(said, R"("operations":[])");
  EXPECT_SAYS(said, R"("last":{"func":"AllReduce","sequence":7,)");
}

TEST_F(PluginDoorTest, OfThousandsTheOldestAreSaidAndTheRestCounted) {
  attach();
  Driver nccl(table);
  std::uint64_t looked = 0;
  for (int i = 0; i < 300; ++i) (void)nccl.proxy_op(nccl.enqueue(1), 0, i);
  looked = switchboard.core.load()->looked_at.get();
  const std::string said = stalled();
  EXPECT_EQ(switchboard.core.load()->looked_at.get() - looked,
            2 * switchboard.core.load()->spans.used());
  EXPECT_SAYS(said, R"("left_out":44)");
  EXPECT_SAYS(said, R"("peer":0,"send")");
  EXPECT_SAYS(said, R"("peer":255,"send")");
  EXPECT_NOT(said, R"("peer":256,"send")");
}

TEST_F(PluginDoorTest, ACommunicatorThatFollowsInItsPlaceKnowsNothingOfTheLast) {
  attach();
  for (int i = 0; i < 600; ++i) {  // once round the table
    Driver nccl(table, "one");
    EXPECT_SAYS(stalled(), R"("last":null,"last_point_to_point":null,"sequences":{})");
    if (i % 100 == 0) nccl.stop(nccl.p2p(nullptr, nullptr, "Send", 4));
    (void)nccl.enqueue(1);
  }
}

TEST_F(PluginDoorTest, WhoHasLeftAndWhoNeverCameIsASentence) {
  EXPECT_SAYS(stalled(), "ringmain: nobody follows operations in this process");
  attach();
  EXPECT_SAYS(stalled(), R"("communicators":[])");
  (void)source.detach();
  EXPECT_SAYS(stalled(), "ringmain: nobody follows operations in this process");
}

/// Sources come and go, and operations as well, while somebody asks.
TEST(PluginDoorStressTest, ItMayBeAskedWhileTheSourceComesAndGoes) {
  const PluginTable table(7);
  std::atomic<bool> over{false};
  std::thread asks([&over] {
    while (!over) EXPECT_TRUE(!stalled().empty());
  });
  std::thread calls([&over, &table] {
    while (!over) {
      Driver nccl(table);
      for (int i = 0; i < 20; ++i) {
        void* const proxy = nccl.proxy_op(nccl.enqueue(1), 0);
        nccl.record(nccl.step(proxy, 0), abi::kSendWait);
        nccl.stop(proxy);
      }
    }
  });
  for (int i = 0; i < 200; ++i) {
    TestBus bus;
    auto heard = bus.heard<Stalled>();
    Options with;
    with.kernel_channels = KernelChannels::never;
    auto made = Source::attach(bus, with);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_TRUE(stalled().starts_with('{'));
    if (i % 2 == 0) {
      EXPECT_EQ(made.value().detach(), Detached::done);
    }
  }
  over = true;
  asks.join();
  calls.join();
}

}  // namespace
}  // namespace ringmain::nccl
