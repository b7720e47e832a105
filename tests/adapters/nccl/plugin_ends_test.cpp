// Is the end of an operation said once, with what shows it, under the id that its call had?
#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginEndsTest : public PluginFixture {
 protected:
  PluginTable table{7};
};

/// Without kernels' NCCL channels.
class PluginProxyEndsTest : public PluginEndsTest {
 protected:
  PluginProxyEndsTest() {
    with = options();
    with.kernel_channels = KernelChannels::never;
  }
  Options with;
};

TEST_F(PluginEndsTest, AnOperationThatNobodyIssuedIsIssuedStartedAndCompletedOnce) {
  auto issued = bus.heard<collective::Issued>();
  auto started = bus.heard<collective::Started>();
  auto completed = bus.heard<collective::Completed>();
  auto evidence = bus.heard<Evidence>();
  auto operations = bus.heard<Operation>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(3);
  void* open[3];
  for (int c = 0; c < 3; ++c) open[c] = nccl.kernel(operation, c, 1000);
  bus.deliver();
  EXPECT_EQ(started.size(), 1);
  for (int c = 0; c < 3; ++c) {
    EXPECT_TRUE(completed.empty());
    nccl.kernel_stop(open[c], 2000);
    bus.deliver();
  }
  ASSERT_EQ(issued.size(), 1);
  ASSERT_EQ(started.size(), 1);
  ASSERT_EQ(completed.size(), 1);
  ASSERT_EQ(evidence.size(), 1);
  EXPECT_NE(issued[0].op_id, 0);
  EXPECT_EQ(issued[0].op.view(), "all_reduce");
  EXPECT_EQ(issued[0].group.view(), "0:default_pg");
  EXPECT_EQ(issued[0].sequence, 7);
  EXPECT_EQ(issued[0].bytes, 4096);
  EXPECT_EQ(issued[0].group_size, 8);
  EXPECT_EQ(issued[0].rank, 3);
  EXPECT_EQ(issued[0].backend.view(), "nccl");
  EXPECT_EQ(started[0].op_id, issued[0].op_id);
  EXPECT_EQ(completed[0].op_id, issued[0].op_id);
  EXPECT_EQ(completed[0].kernels, 3);
  EXPECT_EQ(completed[0].op.view(), "all_reduce");
  EXPECT_GT(completed[0].duration_ns, 0);
  EXPECT_EQ(evidence[0].op_id, issued[0].op_id);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::kernel_channels);
  EXPECT_EQ(evidence[0].ended_channels, 3);
  EXPECT_GT(evidence[0].ended_ns, evidence[0].began_ns);
  EXPECT_EQ(operations[0].op_id, issued[0].op_id);
  for (const KernelChannel& one : kernels) EXPECT_EQ(one.op_id, issued[0].op_id);
}

TEST_F(PluginEndsTest, AnAllGathersBytesAreThoseOfAllRanks) {
  auto issued = bus.heard<collective::Issued>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  nccl.stop(nccl.coll(nullptr, nullptr, 1, "AllGather"));
  bus.deliver();
  ASSERT_EQ(issued.size(), 1);
  EXPECT_EQ(issued[0].bytes, 4096 * 8);
}

TEST_F(PluginEndsTest, TheIdIsThatOfTheCallAbove) {
  auto issued = bus.heard<collective::Issued>();
  auto started = bus.heard<collective::Started>();
  auto completed = bus.heard<collective::Completed>();
  auto kernels = bus.heard<KernelChannel>();
  auto apis = bus.heard<Api>();
  attach();
  const auto ledger = collective::Ledger::of(bus).value();
  Driver nccl(table);
  collective::Issued above;
  above.op = Name("all_reduce");
  above.sequence = 41;
  const std::uint64_t id = ledger->issue(above);
  void* operation = nullptr;
  {
    const collective::Ledger::Inside inside(*ledger, id);
    operation = nccl.enqueue(1);
  }
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  bus.deliver();
  ASSERT_EQ(issued.size(), 1);
  ASSERT_EQ(started.size(), 1);
  ASSERT_EQ(completed.size(), 1);
  EXPECT_EQ(completed[0].op_id, id);
  EXPECT_EQ(completed[0].sequence, 41);
  EXPECT_EQ(kernels[0].op_id, id);
  EXPECT_EQ(apis[0].op_id, id);
  EXPECT_FALSE(ledger->completed(id));  // whoever comes later is not believed
}

TEST_F(PluginEndsTest, WhatIsMadeOfSeveralOperationsHasItsIdOnThemAndItsOwnEnd) {
  auto issued = bus.heard<collective::Issued>();
  auto completed = bus.heard<collective::Completed>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  const auto ledger = collective::Ledger::of(bus).value();
  Driver nccl(table);
  collective::Issued above;
  above.op = Name("all_to_all");
  const std::uint64_t id = ledger->issue(above);
  void* operation = nullptr;
  {
    const collective::Ledger::Inside inside(*ledger, id);
    void* const call = nccl.p2p_api(nullptr, "Send");
    nccl.stop(call);
    void* const plan = nccl.plan();
    operation = nccl.p2p(call, plan, "Send", 1);
    nccl.stop(operation);
  }
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  bus.deliver();
  EXPECT_EQ(issued.size(), 1);
  EXPECT_TRUE(completed.empty());
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].op_id, id);
  EXPECT_TRUE(ledger->completed(id));
}

TEST_F(PluginEndsTest, AWrapperThatOnlySetsTheThreadsOperationIsFound) {
  auto operations = bus.heard<Operation>();
  attach();
  Driver nccl(table);
  {
    const collective::CurrentOperation current(4711);
    (void)nccl.enqueue(1);
  }
  bus.deliver();
  ASSERT_EQ(operations.size(), 1);
  EXPECT_EQ(operations[0].op_id, 4711);
}

TEST_F(PluginEndsTest, KernelsBeforeNcclSaysThatItHasEnqueuedEndItAsWell) {
  auto completed = bus.heard<collective::Completed>();
  auto kernels = bus.heard<KernelChannel>();
  auto operations = bus.heard<Operation>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.coll(nullptr, nccl.plan(), 1);
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  nccl.stop(operation);
  bus.deliver();
  EXPECT_EQ(completed.size(), 1);
  ASSERT_EQ(operations.size(), 1);
  EXPECT_EQ(operations[0].ending, Ending::stopped);
  EXPECT_EQ(counts().stale_stops, 0);
}

TEST_F(PluginProxyEndsTest, TheLastProxyOfAllNcclChannelsEndsIt) {
  auto completed = bus.heard<collective::Completed>();
  auto evidence = bus.heard<Evidence>();
  attach(with);
  Driver nccl(table);
  void* const operation = nccl.enqueue(2);
  void* const first = nccl.proxy_op(operation, 0);
  nccl.stop(first);  // the second one was not appended yet
  bus.deliver();
  EXPECT_TRUE(completed.empty());
  void* const second = nccl.proxy_op(operation, 1);
  void* const third = nccl.proxy_op(operation, 1, 4, false);
  nccl.stop(second);
  bus.deliver();
  EXPECT_TRUE(completed.empty());
  nccl.stop(third);
  bus.deliver();
  EXPECT_EQ(completed.size(), 1);
  ASSERT_EQ(evidence.size(), 1);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::proxies);
}

TEST_F(PluginProxyEndsTest, StepsOnWhichDataHasMovedShowThatItHasStarted) {
  auto started = bus.heard<collective::Started>();
  auto steps = bus.heard<ProxyStep>();
  attach(with);
  Driver nccl(table);
  void* const step = nccl.step(nccl.proxy_op(nccl.enqueue(2), 0), 0);
  nccl.record(step, abi::kSendGpuWait);
  bus.deliver();
  EXPECT_TRUE(started.empty());
  nccl.record(step, abi::kSendWait);
  bus.deliver();
  EXPECT_EQ(started.size(), 1);
}

TEST_F(PluginProxyEndsTest, OnOneNodeNobodySeesTheEndAndNothingIsIssued) {
  auto issued = bus.heard<collective::Issued>();
  attach(with);
  Driver nccl(table, "one node", 8, 1);
  for (int i = 0; i < 100; ++i) (void)nccl.enqueue(2);
  bus.deliver();
  EXPECT_TRUE(issued.empty());
}

TEST_F(PluginEndsTest, WhatIsNeverSeenToEndIsSaidToBeUnknownAfterManyOthers) {
  auto failed = bus.heard<collective::Failed>();
  auto evidence = bus.heard<Evidence>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  for (int i = 0; i < 513; ++i) (void)nccl.enqueue(2);
  bus.deliver();
  ASSERT_EQ(failed.size(), 1);
  EXPECT_EQ(failed[0].how, collective::How::unknown);
  ASSERT_EQ(evidence.size(), 1);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::none);
  EXPECT_EQ(counts().unfollowed, 1);
}

TEST_F(PluginEndsTest, ACountOfNcclChannelsThatIsWrongWaitsForALaterOperation) {
  auto evidence = bus.heard<Evidence>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  for (const int channels : {0, 224}) {
    evidence.clear();
    void* const operation = nccl.enqueue(channels);
    nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
    bus.deliver();
    EXPECT_TRUE(evidence.empty());
    void* const later = nccl.enqueue(1);
    nccl.kernel_stop(nccl.kernel(later, 0, 30), 40);
    bus.deliver();
    ASSERT_EQ(evidence.size(), 2);
    EXPECT_EQ(evidence[1].kind, EvidenceKind::later_operation);
  }
  EXPECT_EQ(counts().lost_starts, 0);
}

TEST_F(PluginEndsTest, AnOperationOfTheSamePlanIsNotEndedByAnother) {
  auto evidence = bus.heard<Evidence>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  void* const plan = nccl.plan();
  void* const first = nccl.coll(nullptr, plan, 1);
  void* const second = nccl.coll(nullptr, plan, 1);
  nccl.stop(first);
  nccl.stop(second);
  nccl.kernel_stop(nccl.kernel(second, 0, 10), 20);
  bus.deliver();
  EXPECT_EQ(evidence.size(), 1);
  void* const later = nccl.enqueue(1);
  nccl.kernel_stop(nccl.kernel(later, 0, 30), 40);
  bus.deliver();
  EXPECT_EQ(evidence.size(), 3);
}

TEST_F(PluginEndsTest, TheGpusTimeIsGivenAsTheHostsWithItsError) {
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(2);
  constexpr std::uint64_t kStamp = 1'756'135'989'724'672'000;
  const std::int64_t before = engine::now_ns();
  void* const kernel = nccl.kernel(operation, 0, kStamp);
  const std::int64_t after = engine::now_ns();
  nccl.kernel_stop(kernel, kStamp + 10);
  bus.deliver();
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].gpu_began, kStamp);
  ASSERT_NE(kernels[0].gpu_began_ns, 0);
  // The kernel began between its call and when it was seen.
  EXPECT_LE(kernels[0].gpu_began_ns + kernels[0].gpu_error_ns, after);
  EXPECT_LE(kernels[0].gpu_began_ns - kernels[0].gpu_error_ns, before);
  EXPECT_GE(kernels[0].gpu_error_ns, 0);
}

TEST_F(PluginEndsTest, WhatHangsIsSaidWithWhomItWaitsFor) {
  auto stalled = bus.heard<Stalled>();
  attach();
  Driver nccl(table);
  EXPECT_EQ(source.tell_stalled(), 0);
  void* const operation = nccl.enqueue(2);
  EXPECT_EQ(source.tell_stalled(), 1);
  void* const op = nccl.proxy_op(operation, 1, 6, false);
  void* const step = nccl.step(op, 4);
  struct {
    abi::State state;
    StallReading reading;
  } const rows[] = {{abi::kSendGpuWait, StallReading::own_gpu_late},
                    {abi::kSendPeerWait, StallReading::peer_has_no_room},
                    {abi::kSendWait, StallReading::network},
                    {abi::kRecvWait, StallReading::peer_or_network},
                    {abi::kRecvFlushWait, StallReading::local_pci},
                    {abi::kRecvGpuWait, StallReading::own_gpu_not_taking}};
  for (const auto& row : rows) {
    nccl.record(step, row.state);
    EXPECT_EQ(Source::tell_stalled_in_process(), 1);
  }
  bus.deliver();
  ASSERT_EQ(stalled.size(), 7);
  EXPECT_EQ(stalled[0].reading, StallReading::not_begun);
  EXPECT_EQ(stalled[0].func.view(), "AllReduce");
  EXPECT_EQ(stalled[0].sequence, 7);
  EXPECT_EQ(stalled[0].step, -1);
  EXPECT_TRUE(stalled[0].asked);
  for (std::size_t i = 0; i < 6; ++i) {
    const Stalled& one = stalled[i + 1];
    EXPECT_EQ(one.reading, rows[i].reading);
    EXPECT_EQ(one.peer, 6);
    EXPECT_EQ(one.nccl_channel, 1);
    EXPECT_EQ(one.step, 4);
    EXPECT_EQ(one.open_steps, 1);
    EXPECT_GT(one.since_ns, 0);
  }
}

}  // namespace
}  // namespace ringmain::nccl
