// Is what was stored for a handle found, while threads come and go and handles are reused?
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/mpi/mpi_groups.hpp"
#include "adapters/sources/mpi/mpi_requests.hpp"

namespace ringmain::mpi {
namespace {

TEST(MpiRequestsTest, AHandleLeadsToItsOperationUntilThatIsDropped) {
  const auto requests = std::make_unique<Requests>();
  EXPECT_EQ(requests->hold(7), nullptr);
  Request* const made = requests->take(7);
  EXPECT_EQ(requests->hold(7), nullptr) << "not shown yet";
  made->operation.op_id = 70;
  Requests::show(*made);
  Request* const held = requests->hold(7);
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->operation.op_id, 70u);
  EXPECT_EQ(requests->hold(7), nullptr) << "held by one at a time";
  Requests::show(*held);
  Requests::drop(*requests->hold(7));
  EXPECT_EQ(requests->hold(7), nullptr);
}

TEST(MpiRequestsTest, OneHandleMayStandForSeveralOperations) {
  const auto requests = std::make_unique<Requests>();
  std::uint64_t put = 0;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    Request* const made = requests->take(9);
    made->operation.op_id = id;
    Requests::show(*made);
    put += id;
  }
  std::uint64_t got = 0;
  while (Request* const held = requests->hold(9)) {
    got += held->operation.op_id;
    Requests::drop(*held);
  }
  EXPECT_EQ(got, put);
}

TEST(MpiRequestsTest, WhatHasNoRoomIsRefusedAndRoomComesBack) {
  const auto requests = std::make_unique<Requests>();
  for (std::uint64_t i = 0; i < Requests::kInFlightMax; ++i) {
    Request* const made = requests->take(2 + 64 * i);
    ASSERT_NE(made, nullptr);
    Requests::show(*made);
  }
  EXPECT_EQ(requests->take(3), nullptr);
  for (std::uint64_t i = 0; i < Requests::kInFlightMax; ++i) {
    Request* const held = requests->hold(2 + 64 * i);
    ASSERT_NE(held, nullptr) << i;
    Requests::drop(*held);
  }
  EXPECT_NE(requests->take(3), nullptr);
}

TEST(MpiRequestsTest, RequestsThatOneThreadMakesAndAnotherEndsAreEachEndedOnce) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kRounds = 20'000;
  const auto requests = std::make_unique<Requests>();
  std::atomic<std::uint64_t> handed[kThreads] = {};  // a handle each, 0: none
  std::atomic<std::uint64_t> ended{0};
  std::vector<std::thread> threads;
  for (std::uint64_t me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {  // handles are few, so they are used again at once
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        const std::uint64_t handle = 2 + me + kThreads * (i % 3);
        Request* const made = requests->take(handle);
        made->operation.op_id = handle;
        Requests::show(*made);
        handed[me] = handle;
        handed[me].notify_one();
        handed[me].wait(handle);
      }
    });
    threads.emplace_back([&, me] {
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        handed[me].wait(0);
        const std::uint64_t handle = handed[me];
        Request* const held = requests->hold(handle);
        if (held != nullptr && held->operation.op_id == handle) ++ended;
        if (held != nullptr) Requests::drop(*held);
        handed[me] = 0;
        handed[me].notify_one();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads * kRounds);
}

/// Some name, without the table of names.
Name named(std::uint32_t id) noexcept {
  return std::bit_cast<Name>(id);
}

TEST(MpiGroupsTest, AHandleThatComesBackIsAnotherGroup) {
  const auto groups = std::make_unique<Groups>();
  EXPECT_EQ(groups->find(5), nullptr);
  Group* const first = groups->add(5, {.name = named(1), .rank = 2, .size = 3}).group;
  EXPECT_EQ(groups->find(5), first);
  EXPECT_FALSE(groups->add(5, {}).new_here);
  EXPECT_EQ(groups->add(5, {.name = named(9), .rank = 9, .size = 9}).group, first)
      << "the first one stays";
  EXPECT_EQ(first->rank, 2);
  ++first->collectives;
  groups->forget(5);
  EXPECT_EQ(groups->find(5), nullptr);
  Group* const second = groups->add(5, {.name = named(4), .rank = 0, .size = 2}).group;
  EXPECT_EQ(second->name.load(), named(4));
  EXPECT_EQ(second->collectives, 0u);
}

TEST(MpiGroupsTest, ManyMoreGroupsThanFitMayComeOneAfterAnother) {
  const auto groups = std::make_unique<Groups>();
  Group* const stays = groups->add(3, {.name = named(1), .rank = 1, .size = 1}).group;
  for (std::uint64_t handle = 100; handle < 100 + 3 * Groups::kLiveMax; ++handle) {
    ASSERT_NE(groups->add(handle, {.name = named(2), .rank = 0, .size = 1}).group, nullptr);
    groups->forget(handle);
  }
  EXPECT_EQ(groups->find(3), stays);
  for (std::uint64_t i = 1; i < Groups::kLiveMax; ++i) {
    ASSERT_NE(groups->add(1'000'000 + i, {}).group, nullptr);
  }
  EXPECT_EQ(groups->add(7, {}).group, nullptr) << "as many are alive as have room";
}

TEST(MpiGroupsTest, ThreadsThatMeetAGroupAtOnceCountItsCollectivesTogether) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10'000;
  const auto groups = std::make_unique<Groups>();
  std::vector<std::thread> threads;
  for (int me = 0; me < kThreads; ++me) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        Group* found = groups->find(8);
        if (found == nullptr)
          found = groups->add(8, {.name = named(1), .rank = 0, .size = 1}).group;
        ++found->collectives;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(groups->find(8)->collectives, static_cast<std::uint64_t>(kThreads * kRounds));
}

}  // namespace
}  // namespace ringmain::mpi
