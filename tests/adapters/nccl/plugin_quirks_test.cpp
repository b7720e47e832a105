// What NCCL does that no plugin would expect: each quirk that is known, and that it changes
// nothing but a count. The names are those of facts that NCCL's source shows.
#include <set>
#include <thread>
#include <vector>

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginQuirksTest : public PluginFixture {
 protected:
  PluginQuirksTest() {
    all = bus.subscribe("nccl.*", [](const EventView&) {});
  }
  PluginTable table{6};
  Subscription all;
};

TEST_F(PluginQuirksTest, Q1_ACallThatIsStoppedAgainAndAgainIsStoppedOnce) {
  auto apis = bus.heard<Api>();
  attach();
  Driver nccl(table);
  void* const call = nccl.coll_api(nullptr);
  for (int i = 0; i < 10; ++i) nccl.stop(call);
  bus.deliver();
  EXPECT_EQ(apis.size(), 1);
  EXPECT_EQ(counts().stopped, 1);
  EXPECT_EQ(counts().stale_stops, 9);
}

TEST_F(PluginQuirksTest, Q1_AStaleHandleNeverStopsWhoCameIntoItsPlace) {
  attach();
  Driver nccl(table);
  void* const stale = nccl.plan();
  nccl.stop(stale);
  std::vector<void*> open;
  for (int i = 0; i < 1000; ++i) open.push_back(nccl.plan());
  for (int i = 0; i < 1000; ++i) nccl.stop(stale);
  EXPECT_EQ(counts().stale_stops, 1000);
  EXPECT_EQ(counts().stopped, 1);
  for (void* const one : open) nccl.stop(one);
  EXPECT_EQ(counts().stopped, 1001);
}

TEST_F(PluginQuirksTest, Q2_Q3_AKernelsStopWithoutAStartBelongsToNoOperation) {
  auto kernels = bus.heard<KernelChannel>();
  auto evidence = bus.heard<Evidence>();
  attach();
  Driver nccl(table);
  void* const first = nccl.enqueue(2);
  void* const kernel = nccl.kernel(first, 0, 10);
  nccl.kernel_stop(kernel, 20);
  nccl.kernel_stop(nccl.kernel(first, 1, 10), 20);
  void* const second = nccl.enqueue(2);
  nccl.kernel_stop(nccl.kernel(second, 0, 30), 40);
  nccl.kernel_stop(kernel, 40);  // of the pooled place: the GPU was quicker than the host's look
  bus.deliver();
  EXPECT_EQ(kernels.size(), 3);
  EXPECT_EQ(counts().stale_stops, 1);
  EXPECT_EQ(counts().stale_states, 1);
  ASSERT_EQ(evidence.size(), 1);  // the second one's channel 1 was never seen
  void* const third = nccl.enqueue(1);
  nccl.kernel_stop(nccl.kernel(third, 0, 50), 60);
  bus.deliver();
  ASSERT_EQ(evidence.size(), 3);
  EXPECT_EQ(evidence[1].kind, EvidenceKind::kernel_channels);
  EXPECT_EQ(evidence[2].kind, EvidenceKind::later_operation);
  EXPECT_EQ(evidence[2].ended_channels, 1);
  EXPECT_EQ(counts().lost_starts, 1);
}

TEST_F(PluginQuirksTest, Q4_TheHandleIsWrittenOnEveryPath) {
  Driver unattached(table);  // Driver::start() looks at it
  EXPECT_EQ(unattached.plan(), nullptr);
  attach();
  Driver nccl(table);
  EXPECT_NE(nccl.plan(), nullptr);
  EXPECT_EQ(nccl.start(Driver::descriptor(abi::kColl), reinterpret_cast<void*>(0x1234)), nullptr);
  EXPECT_EQ(nccl.start(Driver::descriptor(abi::kColl), nullptr), nullptr);
  EXPECT_EQ(counts().no_context, 2);
  EXPECT_EQ(table.start(nccl.context, nullptr, Driver::descriptor(abi::kColl)), abi::kSuccess);
}

TEST_F(PluginQuirksTest, Q5_AStepThatIsBegunAgainRetiresTheFormerOne) {
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  void* const op = nccl.proxy_op(nccl.enqueue(), 0, 5, false);
  void* const first = nccl.step(op, 2);
  void* const again = nccl.step(op, 2);
  nccl.stop(first);  // too late
  nccl.stop(again);
  bus.deliver();
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0].ending, Ending::stale);
  EXPECT_EQ(steps[1].ending, Ending::stopped);
  EXPECT_EQ(counts().stale, 1);
  EXPECT_EQ(counts().stale_stops, 1);
}

TEST_F(PluginQuirksTest, Q6_EachTryOfASendIsCountedAndNotPublished) {
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  void* const step = nccl.step(nccl.proxy_op(nccl.enqueue(), 0), 0);
  for (int i = 0; i < 10000; ++i) nccl.record(step, abi::kSendPeerWait);
  nccl.stop(step);
  bus.deliver();
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].peer_waits, 10000);
}

TEST_F(PluginQuirksTest, Q7_AStepWhoseStatesNeverComeIsAStep) {
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  nccl.stop(nccl.step(nullptr, 9));  // of an operation that was dropped
  bus.deliver();
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].last, StepState::begun);
  EXPECT_EQ(steps[0].rank, 3);
  EXPECT_EQ(steps[0].parent, 0);
}

TEST_F(PluginQuirksTest, Q9_EachReplayOfAGraphIsAnOperationOfItsOwn) {
  auto operations = bus.heard<Operation>();
  auto issued = bus.heard<collective::Issued>();
  auto completed = bus.heard<collective::Completed>();
  auto apis = bus.heard<Api>();
  attach();
  Driver nccl(table);
  nccl.captured = true;
  void* const call = nccl.coll_api(nullptr);
  nccl.stop(call);
  std::thread host_functions([&] {
    for (int replay = 0; replay < 100; ++replay) {
      void* const plan = nccl.plan();
      void* const operation = nccl.coll(call, plan, 1);
      nccl.stop(operation);
      nccl.stop(plan);
      nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
    }
  });
  host_functions.join();
  bus.deliver();
  ASSERT_EQ(operations.size(), 100);
  ASSERT_EQ(issued.size(), 100);
  EXPECT_EQ(completed.size(), 100);
  std::set<std::uint64_t> ids;
  for (const Operation& one : operations) {
    EXPECT_EQ(one.parent, apis[0].id);
    ids.insert(one.op_id);
  }
  EXPECT_EQ(ids.size(), 100);
  EXPECT_FALSE(ids.contains(0));
}

TEST_F(PluginQuirksTest, Q10_WhatAPlanKeepsAfterItsEndIsStale) {
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(1);
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  nccl.stop(operation);
  EXPECT_EQ(counts().stale_stops, 1);
}

TEST_F(PluginQuirksTest, Q11_WhatBelongsToAGroupMayComeAfterItsEnd) {
  auto operations = bus.heard<Operation>();
  auto launches = bus.heard<Launch>();
  attach();
  Driver nccl(table);
  void* const group = nccl.group_api();
  void* const call = nccl.coll_api(group);
  nccl.stop(call);
  nccl.stop(group);
  std::thread job([&] {
    auto d = Driver::descriptor(abi::kKernelLaunch, group);
    nccl.stop(nccl.start(d));
    void* const plan = nccl.plan();
    nccl.stop(nccl.coll(call, plan));
    nccl.stop(plan);
  });
  job.join();
  bus.deliver();
  ASSERT_EQ(operations.size(), 1);
  ASSERT_EQ(launches.size(), 1);
  EXPECT_NE(operations[0].parent, 0);
  EXPECT_NE(launches[0].parent, 0);
  EXPECT_EQ(counts().stale_stops, 0);
}

TEST_F(PluginQuirksTest, Q12_Q14_WhatNcclNeverStopsIsAbortedWhenItsCommunicatorGoes) {
  auto steps = bus.heard<ProxyStep>();
  auto ops = bus.heard<ProxyOp>();
  auto kernels = bus.heard<KernelChannel>();
  auto operations = bus.heard<Operation>();
  auto apis = bus.heard<Api>();
  auto failed = bus.heard<collective::Failed>();
  attach();
  Driver nccl(table);
  Driver other(table, "other");
  void* const theirs = other.plan();
  void* const call = nccl.coll_api(nccl.group_api());
  void* const operation = nccl.coll(call, nccl.plan());
  (void)nccl.step(nccl.proxy_op(operation, 0), 0);
  (void)nccl.kernel(operation, 0, 10);
  nccl.finalize();
  bus.deliver();
  for (const auto* heard : {&apis[0], &apis[1]}) EXPECT_EQ(heard->ending, Ending::aborted);
  ASSERT_EQ(operations.size(), 1);
  EXPECT_EQ(operations[0].ending, Ending::aborted);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].ending, Ending::aborted);
  ASSERT_EQ(ops.size(), 1);
  EXPECT_EQ(ops[0].ending, Ending::aborted);
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].ending, Ending::aborted);
  ASSERT_EQ(failed.size(), 1);
  EXPECT_EQ(failed[0].how, collective::How::cancelled);
  EXPECT_EQ(counts().aborted, 7);
  EXPECT_EQ(counts().stopped, 0);
  other.stop(theirs);
  EXPECT_EQ(counts().stopped, 1);
  EXPECT_EQ(counts().started, 8);
}

TEST_F(PluginQuirksTest, Q13_OneContextInManyThreadsAtOnce) {
  attach();
  Driver nccl(table);
  constexpr int kThreads = 4, kEach = 2000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) nccl.stop(nccl.plan());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counts().started, kThreads * kEach);
  EXPECT_EQ(counts().stopped, kThreads * kEach);
}

TEST_F(PluginQuirksTest, AFinalizedCommunicatorIsStillKnown) {
  auto controls = bus.heard<ProxyControl>();
  attach();
  Driver parent(table, "parent");
  Driver child(table, "child");
  void* const context = parent.context;
  parent.finalize();
  child.stop(child.start(Driver::descriptor(abi::kProxyCtrl), context));
  bus.deliver();
  ASSERT_EQ(controls.size(), 1);
  EXPECT_EQ(controls[0].group.view(), "parent");
  EXPECT_EQ(table.finalize(context), abi::kSuccess);  // twice: nothing
}

}  // namespace
}  // namespace ringmain::nccl
