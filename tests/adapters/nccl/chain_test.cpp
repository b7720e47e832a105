// Do other plugins behind ringmain's find NCCL as if each were alone?
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/adapters/nccl/fake_plugin.hpp"
#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

FakePlugin& fake_of(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<decltype(&fake_plugin)>(::dlsym(library, "fake_plugin"))();
}

/// A process has one chain, which is loaded before its first communicator.
class ChainTest : public testing::Test {
 protected:
  ChainTest() {
    static const bool set = [] {
      const std::string list = std::string("/no/such/plugin.so:") + RINGMAIN_FAKE_V4 + ":" +
                               RINGMAIN_FAKE_HALF + ":" + RINGMAIN_FAKE_V6 + ":" +
                               RINGMAIN_NCCL_PLUGIN;
      return ::setenv("RINGMAIN_NCCL_CHAIN", list.c_str(), 1) == 0;
    }();
    EXPECT_TRUE(set);
    for (FakePlugin* const one : {&old, &newer}) *one = FakePlugin{};
    old.wanted = abi::kColl | abi::kKernelCh;
    newer.wanted = abi::kProxyStep;
  }
  static std::vector<FakeCall> of(const FakePlugin& fake, FakeCall::What what,
                                  std::uint64_t type = 0) {
    std::vector<FakeCall> found;
    for (const FakeCall& call : fake.calls) {
      if (call.what == what && (type == 0 || call.type == type)) found.push_back(call);
    }
    return found;
  }

  FakePlugin& old = fake_of(RINGMAIN_FAKE_V4);
  FakePlugin& newer = fake_of(RINGMAIN_FAKE_V6);
  PluginTable table{7};
};

TEST_F(ChainTest, EachIsCalledWithItsOwnMaskContextsHandlesAndParents) {
  Driver nccl(table);
  EXPECT_NE(nccl.asked() & abi::kKernelCh, 0);
  EXPECT_NE(nccl.asked() & abi::kProxyStep, 0);
  EXPECT_EQ(nccl.asked() & abi::kProxyCtrl, 0);
  void* const operation = nccl.enqueue(1);
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  void* const op = nccl.proxy_op(operation, 0);
  void* const step = nccl.step(op, 0);
  nccl.record(step, abi::kSendWait);
  nccl.stop(step);
  nccl.stop(op);

  const auto coll = of(old, FakeCall::start, abi::kColl);
  const auto plan = of(old, FakeCall::start, abi::kGroup);
  const auto kernel = of(old, FakeCall::start, abi::kKernelCh);
  ASSERT_EQ(coll.size(), 1);
  ASSERT_EQ(plan.size(), 1);
  ASSERT_EQ(kernel.size(), 1);
  EXPECT_EQ(coll[0].parent, plan[0].handle);  // in version 4 the plan is its parent
  EXPECT_EQ(kernel[0].parent, coll[0].handle);
  EXPECT_EQ(coll[0].context, reinterpret_cast<void*>(0xc001));
  EXPECT_TRUE(of(old, FakeCall::start, abi::kProxyOp).empty());  // it did not ask for it
  EXPECT_TRUE(of(old, FakeCall::start, abi::kCollApi).empty());  // its version has none

  const auto group = of(newer, FakeCall::start, abi::kGroupApi);
  const auto call = of(newer, FakeCall::start, abi::kCollApi);
  const auto their_coll = of(newer, FakeCall::start, abi::kColl);
  const auto their_op = of(newer, FakeCall::start, abi::kProxyOp);
  const auto their_step = of(newer, FakeCall::start, abi::kProxyStep);
  ASSERT_EQ(group.size(), 1);
  ASSERT_EQ(call.size(), 1);
  ASSERT_EQ(their_coll.size(), 1);
  ASSERT_EQ(their_op.size(), 1);
  ASSERT_EQ(their_step.size(), 1);
  EXPECT_EQ(call[0].parent, group[0].handle);
  EXPECT_EQ(their_coll[0].parent, call[0].handle);
  EXPECT_EQ(their_op[0].parent, their_coll[0].handle);
  EXPECT_EQ(their_step[0].parent, their_op[0].handle);
  EXPECT_EQ(their_step[0].context, their_op[0].context);
  EXPECT_TRUE(of(newer, FakeCall::start, abi::kKernelCh).empty());
  ASSERT_EQ(of(newer, FakeCall::record, abi::kSendWait).size(), 1);
  EXPECT_EQ(of(newer, FakeCall::record, abi::kSendWait)[0].handle, their_step[0].handle);
  for (const FakePlugin* const one : {&old, &newer})
    EXPECT_EQ(of(*one, FakeCall::start).size(), of(*one, FakeCall::stop).size());
  nccl.finalize();
  for (const FakePlugin* const one : {&old, &newer})
    EXPECT_EQ(of(*one, FakeCall::finalize).size(), 1);
}

TEST_F(ChainTest, WhatNcclStopsTwiceTheyAreToldOnce) {
  Driver nccl(table);
  void* const call = nccl.coll_api(nullptr);
  for (int i = 0; i < 5; ++i) nccl.stop(call);
  EXPECT_EQ(of(newer, FakeCall::stop).size(), 1);
}

TEST_F(ChainTest, OneThatIsOlderThanThisNcclNeverGetsNullForArguments) {
  // NCCL converts for such a plugin, into arguments of its own.
  TestBus bus;
  Driver nccl(table);
  const auto calls = [&] {
    void* const group = nccl.group_api();
    EXPECT_EQ(table.record(group, abi::kGroupStartApiStop, nullptr), abi::kSuccess);
    nccl.stop(group);
    return of(newer, FakeCall::record, abi::kGroupStartApiStop);
  };
  const auto passed = calls();
  const auto heard_by_bus = bus.heard<Api>();
  const auto source = Source::attach(bus).value();
  const auto heard = calls();
  ASSERT_EQ(passed.size(), 1);
  ASSERT_EQ(heard.size(), 2);
  for (const FakeCall& call : heard) EXPECT_TRUE(call.has_args);
}

TEST_F(ChainTest, OneThatFailsOrGivesNoHandleHarmsNoOther) {
  TestBus bus;
  auto operations = bus.heard<Operation>();
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  old.fails = true;
  newer.gives_no_handle = true;
  (void)nccl.enqueue(1);
  EXPECT_EQ(of(old, FakeCall::start).size(), 2);
  EXPECT_TRUE(of(old, FakeCall::stop).empty());
  EXPECT_TRUE(of(newer, FakeCall::stop).empty());
  bus.deliver();
  EXPECT_EQ(operations.size(), 1);
}

TEST_F(ChainTest, OneThatRefusesACommunicatorIsNotCalledForItAndNamed) {
  TestBus bus;
  auto notices = bus.heard<PluginNotice>();
  auto source = Source::attach(bus).value();
  old.refuses = true;
  Driver nccl(table);
  bus.deliver();
  const auto limited = std::ranges::count_if(notices, [](const PluginNotice& notice) {
    return notice.state == PluginState::limited &&
           notice.reason.view().find("init returned 3: " RINGMAIN_FAKE_V4) != std::string::npos;
  });
  EXPECT_EQ(limited, 1);
  (void)nccl.enqueue(1);
  EXPECT_TRUE(of(old, FakeCall::start).empty());
  EXPECT_FALSE(of(newer, FakeCall::start).empty());
  nccl.finalize();
  EXPECT_TRUE(of(old, FakeCall::finalize).empty());
  EXPECT_EQ(of(newer, FakeCall::finalize).size(), 1);
}

TEST_F(ChainTest, OfAnotherProcesssOperationTheyAreToldWithoutItsAddresses) {
  newer.wanted = abi::kProxyOp;
  Driver nccl(table);
  auto d = Driver::descriptor(abi::kProxyOp, reinterpret_cast<void*>(0x10));
  d.proxy_op.pid = ::getpid() + 1;
  nccl.stop(nccl.start(d, reinterpret_cast<void*>(0x20)));
  const auto ops = of(newer, FakeCall::start, abi::kProxyOp);
  ASSERT_EQ(ops.size(), 1);
  EXPECT_EQ(ops[0].parent, nullptr);
  EXPECT_EQ(ops[0].context, nullptr);
}

TEST_F(ChainTest, OfAProcessWithOurNumberInAnotherNamespaceTheyAreNotTold) {
  newer.wanted = abi::kProxyOp;
  Driver nccl(table);
  auto d = Driver::descriptor(abi::kProxyOp, reinterpret_cast<void*>(0x10));
  d.proxy_op.pid = ::getpid();
  nccl.stop(nccl.start(d, reinterpret_cast<void*>(0x20)));
  EXPECT_TRUE(of(newer, FakeCall::start, abi::kProxyOp).empty());
  TestBus bus;
  const auto heard = bus.heard<ProxyOp>();
  auto source = Source::attach(bus).value();
  nccl.stop(nccl.start(d, reinterpret_cast<void*>(0x20)));
  EXPECT_TRUE(of(newer, FakeCall::start, abi::kProxyOp).empty());
}

/// Between its place among those that are waited for and its publication its thread may be held up,
/// for one by a plugin that is told of it, while a later one ends.
TEST_F(ChainTest, AnOperationThatIsAboutToBePublishedWhenALaterOneEndsIsNotForgotten) {
  TestBus bus;
  auto evidence = bus.heard<Evidence>();
  Options options;
  options.kernel_channels = KernelChannels::always;
  auto source = Source::attach(bus, options).value();
  Driver nccl(table);
  const auto with_its_end = [&] {
    void* const operation = nccl.enqueue(1);
    nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  };
  bool is_first = true;
  newer.on_start = [&](const FakeCall& call) {
    if (call.type == abi::kColl && std::exchange(is_first, false)) with_its_end();
  };
  (void)nccl.enqueue(1);  // of its kernel nothing is told
  bus.deliver();
  EXPECT_EQ(evidence.size(), 1);
  with_its_end();
  bus.deliver();
  ASSERT_EQ(evidence.size(), 3);
  EXPECT_EQ(
      std::ranges::count_if(
          evidence, [](const Evidence& one) { return one.kind == EvidenceKind::later_operation; }),
      1);
}

TEST_F(ChainTest, OneWithoutAFunctionIsLeftOut) {
  FakePlugin& broken = fake_of(RINGMAIN_FAKE_HALF);
  broken.calls.clear();
  Driver nccl(table);
  nccl.stop(nccl.coll_api(nullptr));
  EXPECT_TRUE(broken.calls.empty());
}

TEST_F(ChainTest, WhatTheyAloneWantMakesNoEventAndLeavesNoSpan) {
  TestBus bus;
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  const Counts before = Source::counts();
  (void)nccl.enqueue(1);
  const Counts now = since(before);
  EXPECT_EQ(now.started, 4);  // group, call, plan, operation
  EXPECT_EQ(now.stopped, 4);
  EXPECT_EQ(now.published, 0);
  EXPECT_EQ(of(newer, FakeCall::stop).size(), 4);
}

TEST_F(ChainTest, WhatIsHeardAndWhatIsPassedOnAreParentsOfEachOther) {
  TestBus bus;
  auto operations = bus.heard<Operation>();
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  void* const operation = nccl.enqueue(1);  // heard
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  nccl.stop(nccl.step(nccl.proxy_op(operation, 0), 0));
  const auto call = of(newer, FakeCall::start, abi::kCollApi);
  const auto coll = of(newer, FakeCall::start, abi::kColl);
  const auto plan = of(old, FakeCall::start, abi::kGroup);  // nobody but them
  const auto kernel = of(old, FakeCall::start, abi::kKernelCh);
  const auto op = of(newer, FakeCall::start, abi::kProxyOp);
  const auto step = of(newer, FakeCall::start, abi::kProxyStep);
  ASSERT_EQ(coll.size() + plan.size() + kernel.size() + op.size() + step.size(), 5);
  ASSERT_EQ(call.size(), 1);
  EXPECT_EQ(coll[0].parent, call[0].handle);
  EXPECT_EQ(of(old, FakeCall::start, abi::kColl)[0].parent, plan[0].handle);
  EXPECT_EQ(kernel[0].parent, of(old, FakeCall::start, abi::kColl)[0].handle);
  EXPECT_EQ(op[0].parent, coll[0].handle);
  EXPECT_EQ(step[0].parent, op[0].handle);
  EXPECT_EQ(step[0].context, coll[0].context);
  bus.deliver();
  EXPECT_EQ(operations.size(), 1);
}

TEST_F(ChainTest, ACallIsAParentThoughAThousandOthersCameSince) {
  Driver nccl(table);
  std::vector<void*> calls;
  for (int i = 0; i < 1000; ++i) {
    calls.push_back(nccl.coll_api(nullptr));
    nccl.stop(calls.back());
  }
  for (void* const call : calls) nccl.stop(nccl.coll(call, nullptr));
  const auto first = of(newer, FakeCall::start, abi::kCollApi);
  const auto then = of(newer, FakeCall::start, abi::kColl);
  ASSERT_EQ(first.size(), 1000);
  ASSERT_EQ(then.size(), 1000);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(then[i].parent, first[i].handle) << i;
}

TEST_F(ChainTest, WhatBeganBeforeSomebodyListenedIsStoppedThereAndNotHeard) {
  TestBus bus;
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  void* const plan = nccl.plan();
  auto groups = bus.heard<Group>();
  ASSERT_TRUE(bus.wait_told(nanoseconds(-1)));
  nccl.stop(plan);
  nccl.stop(nccl.plan());
  bus.deliver();
  EXPECT_EQ(groups.size(), 1);
  EXPECT_EQ(of(newer, FakeCall::stop).size(), 2);
}

TEST_F(ChainTest, WhatIsOpenWhenItsCommunicatorEndsIsStoppedNoMore) {
  Driver other(table, "other");
  const Counts before = Source::counts();
  void* const stays = other.plan();
  void* left = nullptr;
  {
    Driver nccl(table);
    left = nccl.plan();
    other.stop(nccl.step(nccl.proxy_op(nccl.coll(nullptr, nullptr), 0), 0));
  }
  EXPECT_EQ(since(before).aborted, 3);
  const auto stopped = of(newer, FakeCall::stop).size();
  other.stop(left);
  other.record(left, abi::kProxyOpInProgress);
  EXPECT_EQ(since(before).stale_stops, 1);
  EXPECT_EQ(since(before).stale_states, 1);
  EXPECT_EQ(of(newer, FakeCall::stop).size(), stopped);
  other.stop(stays);
  EXPECT_EQ(of(newer, FakeCall::stop).size(), stopped + 1);
  // Of no communicator's: with the last one.
  auto d = Driver::descriptor(abi::kProxyOp, reinterpret_cast<void*>(0x10));
  d.proxy_op.pid = ::getpid() + 1;
  void* const foreign = other.start(d, reinterpret_cast<void*>(0x20));
  ASSERT_NE(foreign, nullptr);
  other.finalize();
  EXPECT_EQ(since(before).aborted, 4);
  EXPECT_EQ(since(before).started, since(before).stopped + since(before).aborted);
}

TEST_F(ChainTest, NcclsDescriptorIsAsItWasAfterwards) {
  PluginTable same(6);  // as the one behind
  Driver nccl(same);
  auto what = Driver::descriptor(abi::kColl, nccl.coll_api(nullptr));
  what.coll.func = "AllReduce";
  abi::DescriptorV6 theirs;
  convert(theirs, what, what.parent);
  theirs.coll.parent_group = nccl.plan();
  const abi::DescriptorV6 before = theirs;
  void* handle = nullptr;
  EXPECT_EQ(same.as<abi::TableV6>().start_event(nccl.context, &handle, &theirs), abi::kSuccess);
  EXPECT_EQ(std::memcmp(&theirs, &before, sizeof before), 0);
  const auto coll = of(newer, FakeCall::start, abi::kColl);
  ASSERT_EQ(coll.size(), 1);
  EXPECT_EQ(coll[0].parent, of(newer, FakeCall::start, abi::kCollApi)[0].handle);
  nccl.stop(handle);
}

TEST_F(ChainTest, WhatNoneOfThemFollowsGetsNoHandle) {
  newer.gives_no_handle = true;
  Driver nccl(table);
  const Counts before = Source::counts();
  EXPECT_EQ(nccl.coll_api(nullptr), nullptr);
  EXPECT_EQ(since(before).filtered, 1);
  EXPECT_EQ(since(before).started, 0);
}

TEST_F(ChainTest, AMaskThatOneChangesIsAskedOfNccl) {
  Bus bus;
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  EXPECT_EQ(nccl.asked() & abi::kProxyCtrl, 0);
  __atomic_store_n(newer.mask, int{abi::kProxyCtrl}, __ATOMIC_RELAXED);
  auto groups = bus.channel<Group>().subscribe([](const Group&) {});  // or within a second
  ASSERT_TRUE(bus.wait_told(nanoseconds(-1)));
  EXPECT_NE(nccl.asked() & abi::kProxyCtrl, 0);
}

TEST_F(ChainTest, OneThatIsSlowIsNamedWithItsTime) {
  Bus bus;
  std::atomic<int> named{0};
  std::string sentence;
  auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& notice) {
    if (notice.state != PluginState::slow || named != 0) return;
    sentence = notice.reason.view();
    ++named;
    named.notify_all();
  });
  auto source = Source::attach(bus).value();
  Driver nccl(table);
  old.slow = true;
  for (int i = 0; i < 128; ++i) (void)nccl.coll(nullptr, nullptr);  // one in 64 is measured
  named.wait(0);
  EXPECT_NE(sentence.find(RINGMAIN_FAKE_V4), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(" us in one call"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace ringmain::nccl
