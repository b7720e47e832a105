// Which ends are still said when the source is detached in the middle of operations?
#include <atomic>

#include "adapters/sources/collective/collective_ledger.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginDetachTest : public PluginFixture {
 protected:
  PluginTable table{7};
};

TEST_F(PluginDetachTest, WhatThePluginIssuedAndIsOpenHasFailed) {
  auto issued = bus.heard<collective::Issued>();
  auto completed = bus.heard<collective::Completed>();
  auto failed = bus.heard<collective::Failed>();
  auto kernels = bus.heard<KernelChannel>();
  attach();
  const auto ledger = collective::Ledger::of(bus).value();
  Driver nccl(table);
  void* const ends = nccl.enqueue(1);
  void* const runs = nccl.enqueue(2);
  void* const begins = nccl.coll(nullptr, nullptr, 1);
  nccl.kernel_stop(nccl.kernel(ends, 0, 10), 20);
  void* const one = nccl.kernel(runs, 0, 30);
  EXPECT_EQ(ledger->figures().open, 2);
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(ledger->figures().open, 0);
  nccl.kernel_stop(one, 40);
  nccl.stop(begins);
  bus.deliver();
  EXPECT_EQ(issued.size(), 3);
  EXPECT_EQ(completed.size(), 1);
  ASSERT_EQ(failed.size(), 2);
  for (const collective::Failed& each : failed) {
    EXPECT_EQ(each.how, collective::How::unknown);
    EXPECT_EQ(each.reason.view(),
              "the source of NCCL's events was detached before its end was seen");
  }
  EXPECT_EQ(ledger->figures().late, 0);
  nccl.finalize();
  const Counts now = counts();
  EXPECT_EQ(now.started, now.stopped + now.aborted);
}

/// Its callbacks end nothing from then on; the housekeeper says so.
TEST(PluginDetachLaterTest, WhereItIsDetachedInsideACallbackTheySaySoSoon) {
  Bus bus;
  std::atomic<int> ended{0}, unknown{0};
  auto completed = bus.channel<collective::Completed>().subscribe(
      [&](const collective::Completed&) { ++ended; });
  auto failed = bus.channel<collective::Failed>().subscribe([&](const collective::Failed& one) {
    unknown += one.how == collective::How::unknown ? 1 : 0;
    ++ended;
  });
  std::atomic<bool> is_over{false};
  auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& one) {
    if (one.state != PluginState::detached) return;
    is_over = true;
    is_over.notify_all();
  });
  auto kernels = bus.channel<KernelChannel>().subscribe([](const KernelChannel&) {});
  Options options;
  options.kernel_channels = KernelChannels::always;
  Source source = Source::attach(bus, options).value();
  auto groups = bus.channel<Group>().subscribe_inline(
      [&](const Group&) { EXPECT_EQ(source.detach(), Detached::deferred); });
  ASSERT_TRUE(bus.wait_told(nanoseconds(-1)));
  PluginTable table{7};
  Driver nccl(table);
  void* const operation = nccl.coll(nullptr, nullptr, 1);
  nccl.stop(operation);
  void* const kernel = nccl.kernel(operation, 0, 10);
  nccl.stop(nccl.plan());
  nccl.kernel_stop(kernel, 20);
  is_over.wait(false);
  ASSERT_TRUE(bus.flush(nanoseconds(-1)));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(unknown, 1);
  EXPECT_EQ(collective::Ledger::of(bus).value()->figures().open, 0);
}

}  // namespace
}  // namespace ringmain::nccl
