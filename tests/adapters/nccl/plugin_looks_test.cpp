// How often is the table of spans looked through? What hangs, and what a communicator leaves, is
// found without a look at each place for each of them. Looks are counted.
#include <map>
#include <memory>
#include <vector>

#include "adapters/sources/nccl/nccl_core.hpp"

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginLooksTest : public PluginFixture {
 protected:
  static std::uint64_t looked_at() { return switchboard.core.load()->looked_at.get(); }
  static std::uint64_t used() { return switchboard.core.load()->spans.used(); }
  /// So many spans are open at once: from then on so many places are used.
  static void burst(const Driver& nccl, std::size_t spans) {
    std::vector<void*> open;
    for (std::size_t i = 0; i < spans; ++i) open.push_back(nccl.plan());
    for (void* const one : open) nccl.stop(one);
    EXPECT_GE(used(), spans);
  }
  PluginTable table{7};
};

TEST_F(PluginLooksTest, WhatHangsIsFoundWithItsStepsInAFewLooksThroughTheTable) {
  enum : int { kHang = 300 };
  auto stalled = bus.heard<Stalled>();
  Options with = options();
  with.kernel_channels = KernelChannels::never;
  attach(with);
  Driver nccl(table);
  std::map<int, int> steps;  // by peer
  for (int i = 0; i < kHang; ++i) {
    void* const op = nccl.proxy_op(nccl.enqueue(1), 0, i);
    for (int step = 0; step <= i % 3; ++step) (void)nccl.step(op, step);
    steps[i] = i % 3 + 1;
  }
  (void)nccl.enqueue(1);  // without a proxy yet
  const std::uint64_t before = looked_at();
  EXPECT_EQ(source.tell_stalled(), kHang + 1);
  EXPECT_LE(looked_at() - before, 3 * used());  // once for all, and once for each 256
  bus.deliver();
  ASSERT_EQ(stalled.size(), kHang + 1);
  for (const Stalled& one : stalled) {
    if (one.peer == kNoRank) continue;
    ASSERT_TRUE(steps.contains(one.peer));
    EXPECT_EQ(one.open_steps, steps[one.peer]);
    EXPECT_EQ(one.step, 0);
    steps.erase(one.peer);
  }
  EXPECT_TRUE(steps.empty());
}

TEST_F(PluginLooksTest, ACommunicatorThatLeavesNothingIsNotLookedFor) {
  enum : int { kCommunicators = 20 };
  auto kernels = bus.heard<KernelChannel>();
  auto evidence = bus.heard<Evidence>();
  auto groups = bus.heard<Group>();
  attach();
  Driver first(table);
  burst(first, 20'000);
  const std::uint64_t before = looked_at();
  for (int i = 0; i < kCommunicators; ++i) {
    Driver nccl(table);
    for (int k = 0; k < 3; ++k) nccl.kernel_stop(nccl.kernel(nccl.enqueue(1), 0, 10), 20);
  }
  EXPECT_EQ(looked_at() - before, 0);
  const std::uint64_t whole = used();
  for (int i = 0; i < kCommunicators; ++i) {
    Driver nccl(table);
    (void)nccl.enqueue(1);  // kept until its end is seen, in the communicator's rings
  }
  EXPECT_LT(looked_at() - before, kCommunicators * 2'000);
  const std::uint64_t with_rings = looked_at();
  const Counts ended = counts();
  {
    Driver nccl(table);
    (void)nccl.plan();
  }
  EXPECT_GE(looked_at() - with_rings, whole);
  EXPECT_EQ(counts().aborted, ended.aborted + 1);
}

TEST_F(PluginLooksTest, TheLastCommunicatorsEndLooksOnlyForWhatIsThere) {
  auto groups = bus.heard<Group>();
  attach();
  {
    Driver first(table);
    burst(first, 20'000);
  }
  const std::uint64_t before = looked_at();
  for (int i = 0; i < 10; ++i) {
    Driver nccl(table);
    nccl.stop(nccl.plan());
  }
  EXPECT_EQ(looked_at() - before, 0);
}

}  // namespace
}  // namespace ringmain::nccl
