// Does each span that NCCL begins and ends become one event that says what it was, in every ABI
// version?
#include <thread>
#include <unistd.h>
#include <vector>

#include "bus/test_bus.hpp"

#include "events/steps/join.hpp"
#include "events/steps/source.hpp"

#include "adapters/launch/tid.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginVersionsTest : public PluginFixture, public testing::WithParamInterface<int> {
 protected:
  PluginTable table{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Abi, PluginVersionsTest, testing::Values(4, 5, 6, 7));

TEST_P(PluginVersionsTest, ACollectiveIsToldFromItsCallToItsKernels) {
  auto apis = bus.heard<Api>();
  auto operations = bus.heard<Operation>();
  auto groups = bus.heard<Group>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(2);
  for (int channel = 0; channel < 2; ++channel)
    nccl.kernel_stop(nccl.kernel(operation, channel, 1000), 1500);
  bus.deliver();

  const bool has_api = GetParam() >= 5;
  ASSERT_EQ(apis.size(), has_api ? 2 : 0);
  ASSERT_EQ(operations.size(), 1);
  ASSERT_EQ(groups.size(), 1);
  ASSERT_EQ(kernels.size(), 2);
  const Operation& coll = operations[0];
  EXPECT_EQ(coll.func.view(), "AllReduce");
  EXPECT_EQ(coll.dtype.view(), "ncclFloat32");
  EXPECT_EQ(coll.algorithm.view(), "RING");
  EXPECT_EQ(coll.protocol.view(), "LL");
  EXPECT_EQ(coll.sequence, 7);
  EXPECT_EQ(coll.count, 1024);
  EXPECT_EQ(coll.nccl_channels, 2);
  EXPECT_EQ(coll.warps, 16);
  EXPECT_EQ(coll.plan, groups[0].id);
  EXPECT_EQ(coll.group.view(), "0:default_pg");
  EXPECT_EQ(coll.communicator, 0xc0ffee);
  EXPECT_EQ(coll.rank, 3);
  EXPECT_EQ(coll.ending, Ending::stopped);
  EXPECT_EQ(coll.thread, static_cast<std::int32_t>(run::this_tid()));
  EXPECT_GT(coll.began_ns, 0);
  EXPECT_GE(coll.duration_ns, 0);
  for (const KernelChannel& kernel : kernels) {
    EXPECT_EQ(kernel.parent, coll.id);
    EXPECT_EQ(kernel.rank, 3);  // NCCL says 0: the communicator's
    EXPECT_EQ(kernel.gpu_began, 1000);
    EXPECT_EQ(kernel.gpu_ended, 1500);
    EXPECT_FALSE(kernel.suspect);
  }
  EXPECT_EQ(kernels[1].nccl_channel, 1);
  if (has_api) {
    EXPECT_EQ(apis[0].kind, ApiKind::collective);
    EXPECT_EQ(apis[0].stream, 0x57);
    EXPECT_EQ(apis[1].kind, ApiKind::group);
    EXPECT_EQ(apis[1].depth, 1);
    EXPECT_EQ(apis[0].parent, apis[1].id);
    EXPECT_EQ(coll.parent, apis[0].id);
  }
  const Counts now = counts();
  EXPECT_EQ(now.started, now.stopped);
  EXPECT_EQ(now.started, has_api ? 6 : 4);
}

TEST_P(PluginVersionsTest, StepsSayHowLongTheyWaitedForWhat) {
  auto ops = bus.heard<ProxyOp>();
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  void* const op = nccl.proxy_op(nccl.enqueue(), 1);
  nccl.record(op, abi::kProxyOpInProgress);
  void* const step = nccl.step(op, 3);
  nccl.record(step, abi::kSendGpuWait);
  for (int tries = 0; tries < 100; ++tries) nccl.record(step, abi::kSendPeerWait);
  abi::StateArgs args{};
  args.proxy_step.trans_size = 4096;
  nccl.record(step, abi::kSendWait, &args);
  nccl.stop(step);
  nccl.stop(op);
  bus.deliver();

  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[0].bytes, 4096);
  EXPECT_EQ(steps[0].peer, 5);
  EXPECT_EQ(steps[0].nccl_channel, 1);
  EXPECT_EQ(steps[0].peer_waits, 100);
  EXPECT_EQ(steps[0].last, StepState::send_wait);
  EXPECT_GT(steps[0].gpu_wait_ns, 0);
  EXPECT_GT(steps[0].peer_wait_ns, 0);
  EXPECT_GT(steps[0].network_wait_ns, 0);
  EXPECT_LE(steps[0].gpu_wait_ns + steps[0].peer_wait_ns + steps[0].network_wait_ns,
            steps[0].duration_ns);
  ASSERT_EQ(ops.size(), 1);
  EXPECT_EQ(steps[0].parent, ops[0].id);
  EXPECT_EQ(ops[0].process, ::getpid());
  EXPECT_EQ(ops[0].steps, 4);
  EXPECT_EQ(ops[0].chunk_bytes, 65536);
  EXPECT_GT(ops[0].waited_ns, 0);
  EXPECT_FALSE(ops[0].detached);
}

TEST_P(PluginVersionsTest, SendsSayTheirPeer) {
  auto operations = bus.heard<Operation>();
  attach();
  Driver nccl(table);
  nccl.stop(nccl.p2p(nullptr, nccl.plan(), "Send", 6));
  bus.deliver();
  ASSERT_EQ(operations.size(), 1);
  EXPECT_TRUE(operations[0].point_to_point);
  EXPECT_EQ(operations[0].peer, 6);
  EXPECT_EQ(operations[0].root, kNoRank);
  EXPECT_EQ(operations[0].func.view(), "Send");
}

TEST_P(PluginVersionsTest, WhatAVersionDoesNotKnowIsCountedAndItsHandleIsNull) {
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  attach();
  Driver nccl(table);
  for (std::uint64_t type = 1; type <= 1u << 20; type <<= 1) {
    auto d = Driver::descriptor(static_cast<abi::Type>(type));
    if ((type & abi::all_types(GetParam())) != 0) continue;
    if (GetParam() == 4 && type > 0xff) continue;  // its type is a byte
    EXPECT_EQ(nccl.start(d), nullptr);
  }
  const std::uint64_t expected = GetParam() == 4   ? 0
                                 : GetParam() == 7 ? 5
                                 : GetParam() == 6 ? 6
                                                   : 9;
  EXPECT_EQ(counts().unknown_types, expected);
  void* const group = nccl.plan();
  nccl.record(group, static_cast<abi::State>(99));
  EXPECT_EQ(counts().unknown_states, 1);
  nccl.stop(group);
}

class PluginSpansTest : public PluginFixture {
 protected:
  PluginTable table{7};
};

TEST_F(PluginSpansTest, ControlsSayWhatTheProxyThreadDid) {
  auto controls = bus.heard<ProxyControl>();
  attach();
  Driver nccl(table);
  const auto control = [&](std::initializer_list<abi::State> states, int appended = 0) {
    void* const one = nccl.start(Driver::descriptor(abi::kProxyCtrl));
    abi::StateArgs args{};
    args.proxy_ctrl.appended_proxy_ops = appended;
    for (const abi::State state : states) nccl.record(one, state, &args);
    nccl.stop(one);
  };
  control({abi::kCtrlSleep, abi::kCtrlWakeup});
  control({abi::kCtrlAppend, abi::kCtrlAppendEnd}, 4);
  control({abi::kCtrlIdle});
  control({abi::kCtrlActive});
  bus.deliver();
  ASSERT_EQ(controls.size(), 4);
  EXPECT_EQ(controls[0].kind, ProxyControlKind::sleep);
  EXPECT_EQ(controls[1].kind, ProxyControlKind::append);
  EXPECT_EQ(controls[1].appended, 4);
  EXPECT_EQ(controls[2].kind, ProxyControlKind::idle);
  EXPECT_EQ(controls[3].kind, ProxyControlKind::active);
}

TEST_F(PluginSpansTest, CopyEnginesPhasesAndRequestsAreTold) {
  auto engines = bus.heard<CopyEngine>();
  auto phases = bus.heard<KernelPhase>();
  auto requests = bus.heard<Net>();
  attach();
  Driver nccl(table);
  void* const call = nccl.coll_api(nullptr);
  nccl.stop(call);
  auto d = Driver::descriptor(abi::kCeColl, call);
  d.ce_coll.func = "AllGather";
  d.ce_coll.count = 10;
  d.ce_coll.num_batches = 2;
  d.ce_coll.user_tag = 77;
  void* const coll = nccl.start(d);
  d = Driver::descriptor(abi::kCeSync, coll);
  d.ce_sync = {false, 8};
  nccl.stop(nccl.start(d));
  d = Driver::descriptor(abi::kCeBatch, coll);
  d.ce_batch = {3, 4096, false};
  nccl.stop(nccl.start(d));
  nccl.stop(coll);

  void* const operation = nccl.enqueue();
  void* const kernel = nccl.kernel(operation, 0, 10);
  d = Driver::descriptor(abi::kKernelPhase, kernel);
  d.kernel_phase = {0, 1, "compute", 12};
  nccl.kernel_stop(nccl.start(d), 19);
  nccl.kernel_stop(kernel, 20);

  void* const op = nccl.proxy_op(operation, 0);
  void* const step = nccl.step(op, 0);
  abi::NetSocket socket{1, {9, 2, 512}};
  d = Driver::descriptor(abi::kNetPlugin, step);
  d.net_plugin = {abi::kNetSocket | 1, &socket};
  nccl.stop(nccl.start(d));
  d.net_plugin = {abi::kNetSocket | 2, reinterpret_cast<void*>(1)};  // not known: not read
  nccl.stop(nccl.start(d));
  bus.deliver();

  ASSERT_EQ(engines.size(), 3);
  EXPECT_EQ(engines[0].kind, CopyEngineKind::synchronization);
  EXPECT_EQ(engines[0].ranks, 8);
  EXPECT_EQ(engines[1].kind, CopyEngineKind::batch);
  EXPECT_EQ(engines[1].bytes, 4096);
  EXPECT_EQ(engines[2].func.view(), "AllGather");
  EXPECT_EQ(engines[2].user_tag, 77);
  ASSERT_EQ(phases.size(), 1);
  EXPECT_EQ(phases[0].phase, 1);
  EXPECT_EQ(phases[0].name.view(), "compute");
  EXPECT_EQ(phases[0].gpu_ended, 19);
  ASSERT_EQ(requests.size(), 2);
  EXPECT_EQ(requests[0].kind, NetKind::socket);
  EXPECT_EQ(requests[0].descriptor, 9);
  EXPECT_EQ(requests[0].bytes, 512);
  EXPECT_EQ(requests[0].rank, 3);
  EXPECT_EQ(requests[1].kind, NetKind::unknown);
}

/// Published in NCCL's thread when the span ends, so that it is in the step of its end.
TEST_F(PluginSpansTest, AnEventIsInTheStepInWhichItsSpanEnds) {
  std::vector<StepPlace> places;
  const auto groups = step::subscribe_with_step<Group>(
      bus, [&](const Group&, const StepPlace& in) { places.push_back(in); });
  auto steps = step::Source::attach(bus).value();
  attach();
  Driver nccl(table);
  void* plan = nullptr;
  for (std::uint64_t n = 1; n <= 2; ++n) {
    const auto step = steps.step(n);
    const auto phase = steps.phase(Name("backward"));
    std::thread([&] {
      nccl.stop(plan);  // which the step before has begun
      plan = nccl.plan();
    }).join();
  }
  nccl.stop(plan);
  bus.deliver();
  ASSERT_EQ(places.size(), 2);
  EXPECT_EQ(places[0], (StepPlace{true, 2, Name("backward"), 0}));
  EXPECT_FALSE(places[1].inside);
}

TEST_F(PluginSpansTest, AGroupSaysHowLongItsPartsTook) {
  auto apis = bus.heard<Api>();
  attach();
  Driver nccl(table);
  void* const group = nccl.group_api(2);
  nccl.record(group, abi::kGroupStartApiStop);
  nccl.record(group, abi::kGroupEndApiStart);
  nccl.stop(group);
  bus.deliver();
  ASSERT_EQ(apis.size(), 1);
  EXPECT_EQ(apis[0].depth, 2);
  EXPECT_GT(apis[0].group_start_ns, 0);
  EXPECT_GE(apis[0].group_to_end_ns, apis[0].group_start_ns);
  EXPECT_GE(apis[0].duration_ns, apis[0].group_to_end_ns);
}

TEST_F(PluginSpansTest, TextsThatAreNotKnownAreNotFollowedLater) {
  auto operations = bus.heard<Operation>();
  attach();
  Driver nccl(table);
  char func[] = "Novel", variant[] = "AllReduce_RSxLDMC_AGxSTMC_long";
  auto d = Driver::descriptor(abi::kColl);
  d.coll.func = func;
  d.coll.kernel_variant = variant;
  d.coll.is_sym_coll = true;
  d.coll.user_tag = 5;
  void* const one = nccl.start(d);
  func[0] = variant[0] = '?';
  nccl.stop(one);
  bus.deliver();
  ASSERT_EQ(operations.size(), 1);
  EXPECT_EQ(operations[0].func.view(), "other");
  EXPECT_EQ(operations[0].variant.view(), "AllReduce_RSxLDMC_AGxST");
  EXPECT_TRUE(operations[0].symmetric);
  EXPECT_EQ(operations[0].user_tag, 5);
}

}  // namespace
}  // namespace ringmain::nccl
