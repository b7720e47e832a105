// Is the memory of a realtime lane there before its events come?
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

enum : std::uint32_t { kLaneEvents = 8192 };

const PublisherOptions kRealtimeLane{.capacity_events = kLaneEvents, .realtime = true};

/// The ring of a channel's first lane.
class RingMemory {
 public:
  explicit RingMemory(Bus& bus)
      : core_(detail::Erased::channel(bus, schema<Tick>()).value()), lane_(core_->lane(0)) {}
  [[nodiscard]] bool is_whole() const { return is_there(bytes()); }
  /// What a thread's first publish touches itself.
  [[nodiscard]] bool has_its_first_part() const { return is_there(65536); }
  [[nodiscard]] bool waits_for_a_round() const { return lane_.untouched.load() != 0; }

 private:
  [[nodiscard]] bool is_there(std::size_t bytes) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> there((bytes + page - 1) / page);
    if (::mincore(lane_.slots.ring, bytes, there.data()) != 0) return false;
    return std::all_of(there.begin(), there.end(), [](unsigned char p) { return (p & 1) != 0; });
  }
  [[nodiscard]] std::size_t bytes() const { return (lane_.slots.mask + 1) * lane_.slot_bytes; }

  engine::Ref<engine::ChannelCore> core_;
  engine::Lane& lane_;
};

constexpr const char* kOldLinux =
    "this Linux cannot touch pages that others write to (before 5.14)";

TEST(LaneMemoryTest, ARoundTouchesWhatAThreadsFirstPublishLeft) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  ASSERT_TRUE(ticks.set_thread_lanes(kRealtimeLane));
  ASSERT_TRUE(ticks.publish({}));
  const RingMemory ring(bus);
  EXPECT_TRUE(ring.has_its_first_part());
  const bool later = ring.waits_for_a_round();
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_TRUE(ring.is_whole());
  EXPECT_FALSE(ring.waits_for_a_round());
  if (!later) GTEST_SKIP() << kOldLinux;
}

TEST(LaneMemoryTest, WhatWasWrittenBeforeTheRoundIsHeardAsItWas) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  std::vector<std::uint64_t> heard;
  const Subscription sub = ticks.subscribe([&](const Tick& t) { heard.push_back(t.n); });
  ASSERT_TRUE(ticks.set_thread_lanes(kRealtimeLane));
  std::vector<std::uint64_t> published;
  for (std::uint64_t n = 1; n <= kLaneEvents; ++n) {
    ASSERT_TRUE(ticks.publish({n}));
    published.push_back(n);
  }
  const bool later = RingMemory(bus).waits_for_a_round();
  ASSERT_TRUE(bus.wait_told(kLong));
  bus.deliver();
  EXPECT_EQ(heard, published);
  if (!later) GTEST_SKIP() << kOldLinux;
}

TEST(LaneMemoryTest, TheHousekeeperComesForItByItselfWhileItsThreadPublishes) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::uint64_t last = 0;
  bool in_order = true;
  const Subscription sub =
      ticks.subscribe([&](const Tick& t) { in_order &= t.n > std::exchange(last, t.n); });
  ASSERT_TRUE(ticks.set_thread_lanes(kRealtimeLane));
  std::uint64_t n = 0;
  ASSERT_TRUE(ticks.publish({++n}));
  const RingMemory ring(bus);
  EXPECT_TRUE(eventually([&] {
    (void)ticks.publish({++n});  // full now and then
    return !ring.waits_for_a_round();
  }));
  EXPECT_TRUE(ring.is_whole());
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(LaneMemoryTest, APublisherHasAllOfItAlsoWhereItGetsAThreadsLane) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  ASSERT_TRUE(ticks.set_thread_lanes(kRealtimeLane));
  std::thread([&] { EXPECT_TRUE(ticks.publish({})); }).join();
  bus.deliver();
  const bool later = RingMemory(bus).waits_for_a_round();
  const auto publisher = ticks.publisher(kRealtimeLane);
  ASSERT_TRUE(publisher);
  ASSERT_EQ(ticks.stats().lanes, 1u) << "the one that the thread gave back";
  EXPECT_TRUE(RingMemory(bus).is_whole());
  if (!later) GTEST_SKIP() << kOldLinux;
}

/// As Linux before 5.14, for the calling thread and those that it starts.
bool refuse_to_populate() {
  enum : std::uint32_t { kPopulateWrite = 23 };
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPopulateWrite, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

TEST(LaneMemoryTest, WhereLinuxCannotTouchItLaterAllOfItIsThereAtOnce) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  ASSERT_TRUE(ticks.set_thread_lanes(kRealtimeLane));
  bool refused = false;
  std::thread([&] {
    refused = refuse_to_populate();
    EXPECT_TRUE(ticks.publish({}));
  }).join();
  if (!refused) GTEST_SKIP() << "system calls cannot be refused here";
  const RingMemory ring(bus);
  EXPECT_TRUE(ring.is_whole());
  EXPECT_FALSE(ring.waits_for_a_round());
}

}  // namespace
}  // namespace ringmain::tests
