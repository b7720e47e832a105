// Is NCCL asked for what somebody listens to, and for nothing else? And what of those who write its
// mask as well, and of a source that comes and goes meanwhile?
#include <memory>
#include <thread>

#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::nccl {
namespace {

/// With a bus whose housekeeper tells of interest.
class PluginMaskTest : public testing::Test {
 protected:
  void attach(Options with = {}) {
    if (with.kernel_channels == KernelChannels::when_heard)
      with.kernel_channels = KernelChannels::always;
    auto made = Source::attach(bus, with);
    ASSERT_TRUE(made) << made.error().message;
    source = std::move(made).value();
  }
  void told() { ASSERT_TRUE(bus.wait_told(nanoseconds(-1))); }
  template <class E>
  Subscription hear() {
    return bus.channel<E>().subscribe([](const E&) {});
  }
  [[nodiscard]] Counts counts() const { return since(before); }

  Bus bus;
  Source source;
  PluginTable table{7};
  const Counts before = Source::counts();
};

TEST_F(PluginMaskTest, NothingIsAskedWhileNobodyListens) {
  Driver early(table);
  attach();
  Driver nccl(table);
  EXPECT_EQ(early.mask, 0);
  EXPECT_EQ(nccl.mask, 0);
  EXPECT_EQ(nccl.plan(), nullptr);
  EXPECT_EQ(counts().filtered, 1);
}

TEST_F(PluginMaskTest, TheMaskFollowsWhoListensWhileCollectivesRun) {
  attach();
  Driver nccl(table), other(table);
  auto kernels = hear<KernelChannel>();
  told();
  const int with_kernels = abi::kKernelCh | abi::kColl | abi::kP2p | abi::kCollApi | abi::kP2pApi;
  EXPECT_EQ(nccl.mask, with_kernels);
  EXPECT_EQ(other.mask, with_kernels);
  void* const operation = nccl.enqueue(1);
  void* const open = nccl.kernel(operation, 0, 10);
  EXPECT_NE(open, nullptr);
  kernels.reset();
  auto steps = hear<ProxyStep>();
  told();
  EXPECT_EQ(nccl.asked() & abi::kKernelCh, 0);
  EXPECT_NE(nccl.asked() & abi::kProxyStep, 0);
  nccl.kernel_stop(open, 20);  // what began before still ends
  EXPECT_EQ(counts().stale_stops, 0);
  EXPECT_EQ(nccl.kernel(operation, 0, 30), nullptr);
  steps.reset();
  told();
  EXPECT_EQ(nccl.mask, 0);
}

TEST_F(PluginMaskTest, AVersionIsAskedForWhatItKnows) {
  PluginTable v4(4), v5(5);
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  attach();
  Driver old(v4), newer(v5), newest(table);
  EXPECT_EQ(old.mask, 0xff);
  EXPECT_EQ(newer.mask, 0xfff);
  EXPECT_EQ(newest.mask, 0xffff);
}

TEST_F(PluginMaskTest, ParentsThatNcclAddsAreFilteredUnlessTheyAreNeeded) {
  auto kernels = hear<KernelChannel>();
  attach();
  Driver nccl(table);
  EXPECT_EQ(nccl.group_api(), nullptr);
  EXPECT_EQ(nccl.plan(), nullptr);
  EXPECT_NE(nccl.coll_api(nullptr), nullptr);
  EXPECT_EQ(counts().filtered, 2);
}

TEST_F(PluginMaskTest, KernelChannelsAndStepsCanBeLeftOut) {
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  Options with;
  with.kernel_channels = KernelChannels::never;
  with.proxy_steps = false;
  attach(with);
  Driver nccl(table);
  EXPECT_EQ(nccl.asked() & (abi::kKernelCh | abi::kKernelPhase | abi::kProxyStep | abi::kNetPlugin),
            0);
  EXPECT_NE(nccl.asked() & abi::kProxyOp, 0);
}

TEST_F(PluginMaskTest, WhoListensToEndsAsksForProxiesAndNotForKernels) {
  auto ends = hear<collective::Completed>();
  attach();
  Driver nccl(table);
  EXPECT_NE(nccl.asked() & abi::kProxyOp, 0);
  EXPECT_EQ(nccl.asked() & (abi::kKernelCh | abi::kProxyStep), 0);
}

TEST_F(PluginMaskTest, AMaskThatAnotherWroteIsNoticedAndStands) {
  std::atomic<int> masked{0};
  std::atomic<std::uint32_t> mask{0};
  auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& notice) {
    if (notice.state != PluginState::masked) return;
    mask = notice.mask;
    ++masked;
  });
  auto groups = hear<Group>();
  attach();
  Driver nccl(table);
  EXPECT_EQ(nccl.mask, abi::kGroup);
  __atomic_store_n(&nccl.mask, int{abi::kColl}, __ATOMIC_RELAXED);  // as NCCL's RAS
  EXPECT_TRUE(tests::eventually([&] {
    return masked != 0 || __atomic_load_n(&nccl.mask, __ATOMIC_RELAXED) != int{abi::kColl};
  }));
  EXPECT_EQ(masked, 1);
  EXPECT_EQ(mask, abi::kColl);
  EXPECT_EQ(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED), int{abi::kColl});
  EXPECT_EQ(nccl.coll(nullptr, nullptr), nullptr);  // nobody listens to it
  auto launches = hear<Launch>();
  told();
  EXPECT_EQ(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED), abi::kGroup | abi::kKernelLaunch);
}

TEST_F(PluginMaskTest, AMaskIsNotWrittenOnceItsCommunicatorsAreGone) {
  attach();
  auto mask = std::make_unique<int>(0);
  void* context = nullptr;
  ASSERT_EQ(table.init(&context, mask.get(), nullptr, 1, 1, 1, 0), abi::kSuccess);
  auto groups = hear<Group>();
  told();
  EXPECT_EQ(*mask, abi::kGroup);
  ASSERT_EQ(table.finalize(context), abi::kSuccess);
  *mask = 77;
  groups.reset();
  told();
  EXPECT_EQ(*mask, 77);
  mask.reset();  // as NCCL when it is unloaded: a write would be one to freed memory
  auto again = hear<Group>();
  told();
}

TEST_F(PluginMaskTest, AProcessHasOneSource) {
  attach();
  Bus second;
  const auto refused = Source::attach(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::conflict);
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(source.detach(), Detached::was_not_attached);
  auto third = Source::attach(second);
  EXPECT_TRUE(third);
}

TEST_F(PluginMaskTest, ASourceThatLeavesAsksForNothingAndStopsAreStillCounted) {
  std::atomic<int> heard{0};
  auto groups = bus.channel<Group>().subscribe([&](const Group&) { ++heard; });
  attach();
  Driver nccl(table);
  void* const open = nccl.plan();
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(nccl.mask, 0);
  nccl.stop(open);
  EXPECT_EQ(nccl.plan(), nullptr);
  ASSERT_TRUE(bus.flush(nanoseconds(-1)));
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(counts().stopped, 1);
}

TEST_F(PluginMaskTest, ASourceThatIsDetachedInsideACallbackLeavesSoon) {
  std::atomic<int> detached{0};
  auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& notice) {
    if (notice.state != PluginState::detached) return;
    ++detached;
    detached.notify_all();
  });
  auto groups = bus.channel<Group>().subscribe_inline(
      [&](const Group&) { EXPECT_EQ(source.detach(), Detached::deferred); });
  attach();
  Driver nccl(table);
  nccl.stop(nccl.plan());
  detached.wait(0);
  EXPECT_EQ(__atomic_load_n(&nccl.mask, __ATOMIC_RELAXED), 0);
  const auto inside = bus.channel<Launch>().subscribe_inline([&](const Launch&) {
    const auto refused = Source::attach(bus);
    EXPECT_FALSE(refused);
  });
  bus.channel<Launch>().post({});
}

TEST_F(PluginMaskTest, WhoLeavesSaysSoOnce) {
  int detached = 0;
  auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& notice) {
    detached += notice.state == PluginState::detached ? 1 : 0;
  });
  attach();
  EXPECT_EQ(source.leave(nanoseconds(-1)), Detached::done);
  const auto more = hear<PluginNotice>();  // the housekeeper looks, and lets go of it
  told();
  EXPECT_EQ(source.leave(nanoseconds(-1)), Detached::was_not_attached);
  EXPECT_EQ(source.detach(), Detached::was_not_attached);
  ASSERT_TRUE(bus.flush(nanoseconds(-1)));
  EXPECT_EQ(detached, 1);
}

TEST_F(PluginMaskTest, NumbersOutsideOfTheirLimitsAreRefused) {
  Options with;
  with.lane_events = 1;
  const auto refused = Source::attach(bus, with);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::refused);
  EXPECT_NE(refused.error().message.find("lane_events"), std::string::npos);
}

TEST_F(PluginMaskTest, WordsAreReadOrRefusedInOneSentence) {
  const auto read = Options::read("kernel=never,steps=never,door=steps,lane=128,stall=5");
  ASSERT_TRUE(read);
  EXPECT_EQ(read.value().kernel_channels, KernelChannels::never);
  EXPECT_FALSE(read.value().proxy_steps);
  EXPECT_EQ(read.value().lane_events, 128);
  EXPECT_EQ(read.value().stall_seconds, 5);
  EXPECT_EQ(read.value().door, DoorAsks::steps);
  EXPECT_EQ(Options::read("door=all").value().door, DoorAsks::all);
  EXPECT_EQ(Options::read("door=never").value().door, DoorAsks::never);
  for (const char* const wrong :
       {"kernel", "kernel=no", "stall=0", "stall=x", "step=never", ",", "lane=128,lane=128"}) {
    const auto refused = Options::read(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Error::Code::refused);
    EXPECT_NE(refused.error().message.find("nccl"), std::string::npos) << wrong;
  }
  // A name that is right is not guessed at: what is wrong is behind it.
  for (const auto& [wrong, says] : {std::pair("kernel", "kernel=always or kernel=never"),
                                    {"kernel=no", "kernel=always or kernel=never"},
                                    {"steps=always", "steps=never"},
                                    {"door=open", "door=never, door=steps or door=all"}}) {
    const std::string message = Options::read(wrong).error().message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
  }
  const std::string message = Options::read("kernels=never").error().message;
  EXPECT_NE(message.find("did you mean 'kernel'?"), std::string::npos) << message;
}

TEST(PluginFullTest, OfABurstThatFindsTheBusFullEachEventIsPublishedOrCountedAsRefused) {
  TestBus bus;
  auto operations = bus.heard<Operation>();
  Options with;
  with.lane_events = 64;
  with.kernel_channels = KernelChannels::never;
  const Counts before = Source::counts();
  auto source = Source::attach(bus, with).value();
  PluginTable table(7);
  Driver nccl(table);
  constexpr std::uint64_t kBurst = 20'000;
  for (std::uint64_t i = 0; i < kBurst; ++i) nccl.stop(nccl.coll(nullptr, nullptr));
  bus.deliver();
  const Counts now = since(before);
  EXPECT_EQ(now.stopped, kBurst);
  EXPECT_EQ(now.published + now.refused, kBurst);
  EXPECT_EQ(operations.size(), now.published);
  EXPECT_GT(now.refused, 0);
}

TEST_F(PluginMaskTest, AHangIsSaidOnceByItself) {
  std::atomic<int> stalls{0};
  auto stalled = bus.channel<Stalled>().subscribe([&](const Stalled& one) {
    EXPECT_FALSE(one.asked);
    EXPECT_EQ(one.reading, StallReading::peer_or_network);
    ++stalls;
    stalls.notify_all();
  });
  Options with;
  with.stall_seconds = 1;
  attach(with);
  Driver nccl(table);
  void* const op = nccl.proxy_op(nccl.enqueue(2), 0, 6, false);
  nccl.record(nccl.step(op, 0), abi::kRecvWait);
  stalls.wait(0);
  // Two more looks: nothing new was heard, so that nothing is said again.
  std::atomic<int> looks{0};
  auto masked = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& notice) {
    if (notice.state == PluginState::masked) {
      ++looks;
      looks.notify_all();
    }
  });
  for (int i = 0; i < 2; ++i) {
    __atomic_store_n(&nccl.mask, 1000 + i, __ATOMIC_RELAXED);
    looks.wait(i);
  }
  EXPECT_EQ(stalls, 1);
}

}  // namespace
}  // namespace ringmain::nccl
