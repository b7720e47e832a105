// What NCCL says, and is not so, or means nothing here: other processes' addresses, directions,
// stamps, ranks, and what RCCL adds. The names are those of facts that NCCL's source shows.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace {
/// Bytes that /dev/shm is said to have free; that nobody may write there, or that it is not there.
std::uint64_t shared_memory = std::uint64_t{1} << 40;
bool is_read_only = false, is_missing = false;
}  // namespace

/// The plugin's library calls this one: what is free in /dev/shm is up to the test.
extern "C" __attribute__((visibility("default"))) int statvfs(const char* path,
                                                              struct statvfs* found) noexcept {
  struct statfs there {};
  if (is_missing || ::syscall(SYS_statfs, path, &there) != 0) return -1;
  *found = {};
  found->f_flag = is_read_only ? ST_RDONLY : 0;
  found->f_frsize = found->f_bsize = 4096;
  found->f_bavail = found->f_bfree = shared_memory / 4096;
  return 0;
}

namespace ringmain::nccl {
namespace {

class PluginClaimsTest : public PluginFixture {
 protected:
  PluginClaimsTest() {
    all = bus.subscribe("nccl.*", [](const EventView&) {});
  }
  PluginTable table{6};
  Subscription all;
};

TEST_F(PluginClaimsTest, Q8_AnotherProcesssOperationIsDetachedAndItsAddressesAreNotRead) {
  auto ops = bus.heard<ProxyOp>();
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue();
  auto d = Driver::descriptor(abi::kProxyOp, operation);  // its value means something here
  d.rank = 6;
  d.proxy_op = {::getpid() + 1, 4, 2, 1, 1, 1};
  void* const foreign = reinterpret_cast<void*>(0x10);
  void* const op = nccl.start(d, foreign);
  ASSERT_NE(op, nullptr);
  auto step = Driver::descriptor(abi::kProxyStep, op);
  step.rank = 6;
  nccl.stop(nccl.start(step, foreign));  // a local parent, and a foreign context
  nccl.stop(op);
  bus.deliver();
  ASSERT_EQ(ops.size(), 1);
  EXPECT_TRUE(ops[0].detached);
  EXPECT_EQ(ops[0].process, ::getpid() + 1);
  EXPECT_EQ(ops[0].rank, 6);
  EXPECT_EQ(ops[0].peer, 2);
  EXPECT_EQ(ops[0].nccl_channel, 4);
  EXPECT_EQ(ops[0].parent, 0);
  EXPECT_EQ(ops[0].communicator, 0);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].parent, ops[0].id);
  EXPECT_EQ(steps[0].peer, 2);
  EXPECT_EQ(counts().detached, 1);
}

TEST_F(PluginClaimsTest, Q8_AddressesOfAnotherProcessThatMeanSomethingHereAreNotFollowed) {
  auto ops = bus.heard<ProxyOp>();
  auto evidence = bus.heard<Evidence>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(1);
  const Counts enqueued = counts();
  // Both values are another process's, and by accident those of a communicator and an operation
  // here.
  void* const op = nccl.proxy_op(operation, 0, 5, true, ::getpid() + 1);
  ASSERT_NE(op, nullptr);
  nccl.stop(op);  // were it the operation's, it would be its only proxy, and end it
  bus.deliver();
  ASSERT_EQ(ops.size(), 1);
  EXPECT_TRUE(ops[0].detached);
  EXPECT_EQ(ops[0].communicator, 0);
  EXPECT_TRUE(ops[0].group.view().empty());
  EXPECT_EQ(ops[0].parent, 0);
  EXPECT_EQ(ops[0].op_id, 0);
  EXPECT_EQ(counts().detached, enqueued.detached + 1);
  EXPECT_EQ(evidence.size(), 0);
  // What its communicator leaves open does not include it; with the last one all is over.
  Driver other(table);
  void* const open = nccl.proxy_op(operation, 0, 5, true, ::getpid() + 1);
  nccl.finalize();
  EXPECT_EQ(counts().aborted, 0);
  nccl.stop(open);
  EXPECT_EQ(counts().stopped, enqueued.stopped + 2);
}

TEST_F(PluginClaimsTest, Q8_AProcessWithOurNumberInAnotherNamespaceIsForeignToo) {
  auto ops = bus.heard<ProxyOp>();
  attach();
  Driver nccl(table);
  auto d = Driver::descriptor(abi::kProxyOp);
  d.proxy_op.pid = ::getpid();
  // A context of another process: ours with another cookie.
  const auto ours = reinterpret_cast<std::uintptr_t>(nccl.context);
  nccl.stop(nccl.start(d, reinterpret_cast<void*>(ours ^ (std::uintptr_t{5} << 50))));
  bus.deliver();
  ASSERT_EQ(ops.size(), 1);
  EXPECT_TRUE(ops[0].detached);
}

TEST_F(PluginClaimsTest, Q15_StampsOfAnotherLapAreSuspect) {
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue(4);
  nccl.kernel_stop(nccl.kernel(operation, 0, 100), 200);
  nccl.kernel_stop(nccl.kernel(operation, 1, 100), 90);   // ends before it began
  nccl.kernel_stop(nccl.kernel(operation, 0, 150), 250);  // began before the last one had ended
  nccl.kernel_stop(nccl.kernel(operation, 2, 150), 250);
  bus.deliver();
  ASSERT_EQ(kernels.size(), 4);
  EXPECT_FALSE(kernels[0].suspect);
  EXPECT_TRUE(kernels[1].suspect);
  EXPECT_TRUE(kernels[2].suspect);
  EXPECT_FALSE(kernels[3].suspect);
  EXPECT_EQ(counts().suspect, 2);
}

TEST_F(PluginClaimsTest, Q16_AnAllToAllIsToldAsItsSendsAndReceives) {
  auto apis = bus.heard<Api>();
  auto operations = bus.heard<Operation>();
  attach();
  Driver nccl(table);
  void* const group = nccl.group_api(2);
  std::vector<void*> calls;
  for (int peer = 0; peer < 8; ++peer) {
    for (const char* const func : {"Send", "Recv"}) {
      calls.push_back(nccl.p2p_api(group, func));
      nccl.stop(calls.back());
    }
  }
  void* const plan = nccl.plan();
  for (int i = 0; i < 16; ++i)
    nccl.stop(
        nccl.p2p(calls[static_cast<std::size_t>(i)], plan, i % 2 == 0 ? "Send" : "Recv", i / 2));
  nccl.stop(plan);
  nccl.stop(group);
  bus.deliver();
  ASSERT_EQ(apis.size(), 17);
  ASSERT_EQ(operations.size(), 16);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(operations[i].parent, apis[i].id);
    EXPECT_EQ(operations[i].func, apis[i].func);
    EXPECT_EQ(operations[i].peer, static_cast<std::int32_t>(i / 2));
  }
}

TEST_F(PluginClaimsTest, Q17_BothDirectionsOnOneNcclChannelEndTheirOwnOperation) {
  auto evidence = bus.heard<Evidence>();
  attach();
  Driver nccl(table);
  void* const plan = nccl.plan();
  void* const send = nccl.p2p(nullptr, plan, "Send", 1);
  void* const receive = nccl.p2p(nullptr, plan, "Recv", 1);
  nccl.stop(send);
  nccl.stop(receive);
  void* const first = nccl.kernel(send, 3, 10);
  void* const second = nccl.kernel(receive, 3, 10);
  nccl.kernel_stop(first, 20);
  bus.deliver();
  EXPECT_EQ(evidence.size(), 1);
  nccl.kernel_stop(second, 20);
  bus.deliver();
  ASSERT_EQ(evidence.size(), 2);
  EXPECT_EQ(evidence[1].kind, EvidenceKind::kernel_channels);
}

TEST_F(PluginClaimsTest, Q18_ASendThatIsSaidToReceiveIsKnownByWhatItsStepsWaitFor) {
  auto ops = bus.heard<ProxyOp>();
  auto steps = bus.heard<ProxyStep>();
  attach();
  Driver nccl(table);
  void* const operation = nccl.enqueue();
  constexpr bool kSaysSend = false;
  void* const sends = nccl.proxy_op(operation, 0, 5, kSaysSend);
  void* const first = nccl.step(sends, 0);
  nccl.record(first, abi::kSendGpuWait);
  nccl.record(first, abi::kSendPeerWait);
  void* const second = nccl.step(sends, 1);  // before the first one's end, and without a word
  nccl.stop(first);
  nccl.stop(second);
  nccl.stop(sends);
  void* const receives = nccl.proxy_op(operation, 1, 4, kSaysSend);
  void* const third = nccl.step(receives, 0);
  for (const abi::State state : {abi::kRecvWait, abi::kRecvFlushWait, abi::kRecvGpuWait})
    nccl.record(third, state);
  nccl.stop(third);
  nccl.stop(receives);
  bus.deliver();
  ASSERT_EQ(steps.size(), 3);
  EXPECT_TRUE(steps[0].send);
  EXPECT_TRUE(steps[1].send);
  EXPECT_FALSE(steps[2].send);
  ASSERT_EQ(ops.size(), 2);
  EXPECT_TRUE(ops[0].send);
  EXPECT_FALSE(ops[1].send);
}

/// NCCL opens connections for them, whose memory lies in /dev/shm, and crashes where that is full.
class PluginSharedMemoryTest : public PluginFixture {
 protected:
  ~PluginSharedMemoryTest() override {
    shared_memory = std::uint64_t{1} << 40;
    is_read_only = is_missing = false;
  }
  std::uint64_t asked(KernelChannels when) {
    auto with = options();
    with.kernel_channels = when;
    attach(with);
    const auto asked = Driver(table).asked() & (abi::kKernelCh | abi::kKernelPhase);
    EXPECT_EQ(source.detach(), Detached::done);
    return asked;
  }
  PluginTable table{7};
};

TEST_F(PluginSharedMemoryTest, Q19_KernelChannelsAreAskedForByWhoHearsThemWhereThereIsRoom) {
  auto notices = bus.heard<PluginNotice>();
  EXPECT_EQ(asked(KernelChannels::when_heard), 0);  // nobody listens to them
  auto kernels = bus.heard<KernelChannel>();
  EXPECT_EQ(asked(KernelChannels::when_heard), abi::kKernelCh);
  EXPECT_EQ(asked(KernelChannels::never), 0);
  shared_memory = (std::uint64_t{128} << 20) - 4096;
  bus.deliver();
  for (const PluginNotice& one : notices) EXPECT_TRUE(one.reason.view().empty());
  EXPECT_EQ(asked(KernelChannels::when_heard), 0);
  bus.deliver();
  const auto says = [&](std::string_view text) {
    return std::count_if(notices.begin(), notices.end(), [&](const PluginNotice& one) {
      return one.state == PluginState::attached &&
             one.reason.view().find(text) != std::string_view::npos;
    });
  };
  EXPECT_EQ(says("kernel channels are left out, as /dev/shm has less than 128 MiB free"), 1);
  EXPECT_EQ(asked(KernelChannels::always), abi::kKernelCh);
  shared_memory = std::uint64_t{128} << 20;
  EXPECT_EQ(asked(KernelChannels::when_heard), abi::kKernelCh);
  bus.deliver();
  EXPECT_EQ(says("kernel channels"), 1);
  for (bool* const what : {&is_read_only, &is_missing}) {
    *what = true;
    EXPECT_EQ(asked(KernelChannels::when_heard), 0);
    EXPECT_EQ(asked(KernelChannels::always), abi::kKernelCh);
    *what = false;
  }
  bus.deliver();
  EXPECT_EQ(says("kernel channels are left out, as there is no /dev/shm that may be written"), 2);
  EXPECT_EQ(says("kernel channels"), 3);
}

TEST_F(PluginClaimsTest, Q20_TheRankIsTheCommunicators) {
  auto groups = bus.heard<Group>();
  attach();
  Driver nccl(table);
  nccl.stop(nccl.plan());  // NCCL's descriptor says 0
  bus.deliver();
  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].rank, 3);
}

/// What RCCL's version 6 has beyond NCCL's: more at the end of a proxy operation, a type, a state
/// and larger arguments for it.
struct RcclProxyOp {
  abi::ProxyOp common;
  std::uint64_t comm_hash;
  std::int64_t op_count;
  std::int32_t func, protocol, pattern;
  std::uint32_t total_bytes, proxy_bytes;
  std::int32_t raw_steps;
};
union RcclStateArgs {
  abi::StateArgs common;
  struct {
    std::uint8_t counter, reserved;
    std::uint16_t flags;
    std::int64_t value, value2;
  } proxy_diag;
};
static_assert(sizeof(RcclStateArgs) == 24 && offsetof(RcclProxyOp, comm_hash) == 24);
constexpr auto kRcclProxyDiag = static_cast<abi::Type>(1u << 15);   // KernelPhase in v7
constexpr auto kRcclProxyDiagUpdate = static_cast<abi::State>(31);  // KernelPhaseStop in v7

class RcclTest : public PluginClaimsTest {
 protected:
  void* start_op(void* context, void* operation) const {
    abi::DescriptorV6 d;
    std::memset(static_cast<void*>(&d), 0xA5, sizeof d);
    d.type = abi::kProxyOp;
    d.parent = operation;
    d.rank = 3;
    const RcclProxyOp op{{::getpid(), 2, 5, 4, 65536, 1}, 0xfeed, 17, 4, 2, 1, 1 << 20, 1 << 20, 8};
    std::memcpy(static_cast<void*>(&d.proxy_op), &op, sizeof op);
    void* handle = kUnwritten;
    EXPECT_EQ(v6.start_event(context, &handle, &d), abi::kSuccess);
    return handle;
  }
  void count(void* handle) const {
    RcclStateArgs args{};
    args.proxy_diag = {3, 0, 1, -1, -1};
    EXPECT_EQ(v6.record_event_state(handle, kRcclProxyDiagUpdate, &args.common), abi::kSuccess);
  }
  const abi::TableV6& v6 = table.as<abi::TableV6>();
};

TEST_F(RcclTest, WhatItsLongerVersion6AddsIsDroppedAndCounted) {
  auto ops = bus.heard<ProxyOp>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver rccl(table);
  EXPECT_EQ(rccl.asked() & kRcclProxyDiag, 0);  // though KernelPhase is listened to
  void* const operation = rccl.enqueue(1);
  void* const op = start_op(rccl.context, operation);
  for (int i = 0; i < 10; ++i) count(op);
  EXPECT_EQ(rccl.start(Driver::descriptor(kRcclProxyDiag, op)), nullptr);
  rccl.stop(op);
  count(op);  // after its end
  void* const kernel = rccl.kernel(operation, 2, 100);
  count(kernel);  // no stamp
  bus.deliver();
  ASSERT_EQ(ops.size(), 1);
  EXPECT_EQ(ops[0].peer, 5);
  EXPECT_EQ(ops[0].nccl_channel, 2);
  EXPECT_EQ(ops[0].steps, 4);
  EXPECT_EQ(ops[0].chunk_bytes, 65536);
  EXPECT_TRUE(ops[0].send);
  EXPECT_FALSE(ops[0].detached);
  EXPECT_EQ(counts().unknown_types, 1);
  EXPECT_EQ(counts().unknown_states, 11);
  EXPECT_EQ(counts().stale_states, 1);
  rccl.stop(kernel);  // aborted: its stamp never came
  bus.deliver();
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].gpu_ended, 0);
}

TEST_F(RcclTest, WhatIsNotListenedToIsCountedAsUnknownToo) {
  all.reset();
  auto groups = bus.heard<Group>();
  attach();
  Driver rccl(table);
  EXPECT_EQ(rccl.asked(), abi::kGroup);
  EXPECT_EQ(rccl.start(Driver::descriptor(kRcclProxyDiag)), nullptr);
  EXPECT_EQ(counts().unknown_types, 1);
  EXPECT_EQ(counts().filtered, 0);
}

}  // namespace
}  // namespace ringmain::nccl
