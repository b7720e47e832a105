// Is a thread's outermost call found, whatever is not heard of its entries and exits?
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cuda_guard.hpp"

namespace ringmain::cuda {
namespace {

std::size_t row_of(std::string_view name) {
  const auto rows = call_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const CallRow& row) { return row.name == name; });
  EXPECT_NE(found, rows.end()) << name;
  return static_cast<std::size_t>(found - rows.begin());
}

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    for (Switch& each : switches) each.turn();
  }
  /// Each call has a slot of its own, unless told otherwise.
  std::uint64_t enter(std::string_view name, std::uint32_t attachment = 1) {
    return enter(name, slots[next++], attachment);
  }
  std::uint64_t enter(std::string_view name, std::uint64_t& slot, std::uint32_t attachment = 1) {
    const std::size_t row = row_of(name);
    guard.enter(call_rows()[row], switches[row].look(), {switches, attachment}, slot);
    return slot;
  }
  /// The name of the outermost call that has ended, or nothing.
  std::string_view leave(std::uint64_t tag, std::uint32_t attachment = 1) {
    const auto ended = guard.leave(tag, {switches, attachment});
    return ended ? ended->row->name : std::string_view();
  }
  /// Off and on again, as when nobody listened for a while.
  void turn(std::string_view name) {
    switches[row_of(name)].turn();
    switches[row_of(name)].turn();
  }
  bool under_way(CallKind kind) { return guard.under_way(kind, {switches, 1}) != nullptr; }

  Guard guard;
  Switches switches;
  std::uint64_t slots[2048] = {};
  std::size_t next = 0;
};

TEST_F(GuardTest, ACallWithinACallIsNotTheOutermost) {
  const auto outer = enter("cudaMalloc");
  EXPECT_TRUE(guard.outermost());
  const auto inner = enter("cuMemAlloc");
  EXPECT_FALSE(guard.outermost());
  EXPECT_EQ(guard.call().row->name, "cudaMalloc");
  EXPECT_EQ(leave(inner), "");
  EXPECT_EQ(leave(outer), "cudaMalloc");
  EXPECT_EQ(leave(outer), "") << "once";
}

TEST_F(GuardTest, AnExitWithoutItsEntryDoesNothing) {
  EXPECT_EQ(leave(0), "");
  EXPECT_EQ(leave(~std::uint64_t{0}), "");
  const auto outer = enter("cudaMalloc");
  EXPECT_EQ(leave(0), "");
  EXPECT_EQ(leave(outer + 1), "") << "of a call that is deeper than the thread is";
  EXPECT_EQ(leave(outer, 2), "") << "to an attachment that did not hear its entry";
  EXPECT_EQ(leave(outer), "cudaMalloc");
}

TEST_F(GuardTest, AnInnerExitThatNeverComesIsMadeUpForByTheOuterOne) {
  const auto outer = enter("cudaMalloc");
  (void)enter("cuMemAlloc");
  EXPECT_EQ(leave(outer), "cudaMalloc");
  (void)enter("cuMemFree");
  EXPECT_TRUE(guard.outermost());
}

TEST_F(GuardTest, AnExitThatNeverComesIsMadeUpForByTheNextCallOfItsLayer) {
  for (const auto& [lost, next_one] : {std::pair{"cudaMalloc", "cudaFree"},
                                       {"cuMemAlloc", "cuMemFree"},
                                       {"cuMemAlloc", "cudaFree"},
                                       {"cudaDeviceSynchronize", "cudaDeviceSynchronize"},
                                       {"cuCtxSynchronize", "cuStreamSynchronize"}}) {
    SCOPED_TRACE(lost);
    (void)enter(lost);
    const auto tag = enter(next_one);
    EXPECT_TRUE(guard.outermost());
    EXPECT_EQ(leave(tag), next_one);
    guard = {};
  }
}

TEST_F(GuardTest, TwoCallsUnderWayNeverShareASlot) {
  (void)enter("cudaMalloc", slots[0]);
  const auto next_one = enter("cuMemAlloc", slots[0]);
  EXPECT_TRUE(guard.outermost());
  EXPECT_EQ(leave(next_one), "cuMemAlloc");
}

TEST_F(GuardTest, ASynchronizationInAToolsCallbackEndsNoCall) {
  const auto outer = enter("cudaMalloc");
  const auto synchronization = enter("cudaDeviceSynchronize");
  EXPECT_TRUE(guard.outermost()) << "nobody can tell whether cudaMalloc has ended";
  (void)enter("cuCtxSynchronize");
  EXPECT_FALSE(guard.outermost());
  EXPECT_EQ(leave(synchronization), "cudaDeviceSynchronize");
  (void)enter("cuMemAlloc");
  EXPECT_FALSE(guard.outermost());
  EXPECT_EQ(leave(outer), "cudaMalloc");
  EXPECT_EQ(leave(synchronization), "");
}

TEST_F(GuardTest, TheOuterExitEndsASynchronizationWhoseExitNeverComes) {
  const auto outer = enter("cudaMalloc");
  (void)enter("cudaDeviceSynchronize");
  EXPECT_EQ(leave(outer), "cudaMalloc");
  (void)enter("cuMemAlloc");
  EXPECT_TRUE(guard.outermost());
}

TEST_F(GuardTest, AfterItsSwitchTurnedOnlyItsOwnKindIsInside) {
  const auto outer = enter("cudaFree");
  turn("cudaFree");
  EXPECT_TRUE(under_way(CallKind::memory_deallocation));
  EXPECT_FALSE(under_way(CallKind::context));
  (void)enter("cuMemFree");
  EXPECT_FALSE(guard.outermost()) << "the one that cudaFree makes";
  EXPECT_FALSE(under_way(CallKind::memory_deallocation));
  EXPECT_EQ(leave(outer), "cudaFree");

  const auto lost = enter("cudaFree");
  (void)enter("cuMemFree");
  turn("cudaFree");
  const auto next_one = enter("cuMemFree");
  EXPECT_TRUE(guard.outermost()) << "cudaFree has made its own already";
  EXPECT_EQ(leave(lost), "") << "too late";
  EXPECT_EQ(leave(next_one), "cuMemFree");

  (void)enter("cudaFree");
  turn("cudaFree");
  (void)enter("cuEventRecord");
  EXPECT_TRUE(guard.outermost()) << "cudaFree makes none of these";
}

TEST_F(GuardTest, AnotherAttachmentBeginsAnew) {
  const auto before = enter("cudaMalloc", 1);
  const auto after = enter("cuMemAlloc", 2);
  EXPECT_TRUE(guard.outermost());
  EXPECT_EQ(leave(before, 2), "");
  EXPECT_EQ(leave(after, 2), "cuMemAlloc");
}

TEST_F(GuardTest, CallsOfAnInlineSubscriberStandAlone) {
  const auto outer = enter("cudaMalloc");
  std::uint64_t own = 0;
  {
    const Aside aside(guard);
    EXPECT_FALSE(under_way(CallKind::memory_allocation));
    own = enter("cuMemAlloc");
    EXPECT_TRUE(guard.outermost());
    EXPECT_EQ(leave(own), "cuMemAlloc");
  }
  EXPECT_TRUE(under_way(CallKind::memory_allocation));
  EXPECT_EQ(leave(own), "");
  EXPECT_EQ(leave(outer), "cudaMalloc");
}

TEST_F(GuardTest, DeepestCallsKeepTheirOuterOne) {
  const auto outer = enter("cudaMalloc");
  for (int i = 0; i < 1000; ++i) (void)enter("cuMemAlloc");
  EXPECT_EQ(leave(outer), "cudaMalloc");
}

}  // namespace
}  // namespace ringmain::cuda
