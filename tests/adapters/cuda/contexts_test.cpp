// Is what is kept of a context that context's, whoever asks, and whatever ends meanwhile?
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cuda_contexts.hpp"

namespace ringmain::cuda {
namespace {

constexpr std::uint32_t kNeighbour = 256;  // a number that has the same first place

abi::Result three(void*, std::uint32_t* device) {
  *device = 3;
  return abi::kSuccess;
}
abi::Result five(void*, std::uint32_t* device) {
  *device = 5;
  return abi::kSuccess;
}

TEST(ContextsTest, AnAddressIsTheNewestContexts) {
  Contexts contexts;
  int place = 0;
  EXPECT_EQ(contexts.device_of(7, &place, three), 3);
  EXPECT_EQ(contexts.device_of(9, &place, five), 5);  // the end of 7 was not heard
  EXPECT_EQ(contexts.number_of(&place), 9);
  contexts.forget(9);
  EXPECT_EQ(contexts.number_of(&place), 0);
}

TEST(ContextsTest, AnAddressIsNobodysOnceItsContextIsGone) {
  static Contexts contexts;
  static int first = 0, second = 0;
  static std::uint32_t seen = 0;
  constexpr auto kAsk = +[](void*, std::uint32_t* device) -> abi::Result {
    seen = contexts.number_of(&first);  // as another thread may
    *device = 3;
    return abi::kSuccess;
  };
  EXPECT_EQ(contexts.device_of(7, &first, kAsk), 3);
  contexts.forget(7);
  EXPECT_EQ(contexts.device_of(7 + kNeighbour, &second, kAsk), 3);  // in the place that 7 had
  EXPECT_EQ(seen, 0);
}

TEST(ContextsTest, AContextWhoseDeviceIsNotSaidIsKnownAllTheSame) {
  Contexts contexts;
  int place = 0;
  constexpr auto kRefuses = +[](void*, std::uint32_t*) -> abi::Result { return abi::kUnknown; };
  EXPECT_EQ(contexts.device_of(7, &place, kRefuses), kNoDevice);
  EXPECT_EQ(contexts.number_of(&place), 7);
  EXPECT_EQ(contexts.device_of(7, &place, three), 3);
  EXPECT_EQ(contexts.device_of(7, &place, kRefuses), 3) << "it was said already";
}

TEST(ContextsTest, AContextThatEndsWhileItIsAskedForAgainStaysGone) {
  static Contexts contexts;
  static int first = 0, second = 0;
  constexpr auto kRefuses = +[](void*, std::uint32_t*) -> abi::Result { return abi::kUnknown; };
  constexpr auto kIsReplaced = +[](void*, std::uint32_t* device) -> abi::Result {
    contexts.forget(7);
    (void)contexts.device_of(7 + kNeighbour, &second, five);
    *device = 3;
    return abi::kSuccess;
  };
  EXPECT_EQ(contexts.device_of(7, &first, kRefuses), kNoDevice);
  EXPECT_EQ(contexts.device_of(7, &first, kIsReplaced), 3);
  EXPECT_EQ(contexts.number_of(&first), 0);
  EXPECT_EQ(contexts.device_of(7 + kNeighbour, &second, three), 5) << "it was said already";
}

Contexts* asked_of = nullptr;

TEST(ContextsTest, OneThatEndsWhileItIsAskedForIsNotTakenForTheNext) {
  Contexts contexts;
  asked_of = &contexts;
  int first = 0, second = 0;
  constexpr auto kEnds = +[](void*, std::uint32_t* device) -> abi::Result {
    asked_of->forget(7);
    *device = 3;
    return abi::kSuccess;
  };
  EXPECT_EQ(contexts.device_of(7, &first, kEnds), 3);
  EXPECT_EQ(contexts.device_of(7 + kNeighbour, &second, five), 5);
  EXPECT_EQ(contexts.number_of(&second), 7 + kNeighbour);
  EXPECT_NE(contexts.number_of(&first), 7 + kNeighbour);
}

TEST(ContextsTest, APlaceThatIsGivenAwayWhileItIsAskedForIsNotWrittenTo) {
  Contexts contexts;
  asked_of = &contexts;
  static int first, second;
  constexpr auto kIsReplaced = +[](void*, std::uint32_t* device) -> abi::Result {
    asked_of->forget(7);
    (void)asked_of->device_of(7 + kNeighbour, &second, five);
    *device = 3;
    return abi::kSuccess;
  };
  EXPECT_EQ(contexts.device_of(7, &first, kIsReplaced), 3);
  EXPECT_EQ(contexts.device_of(7 + kNeighbour, &second, three), 5) << "it was asked for already";
  EXPECT_EQ(contexts.number_of(&second), 7 + kNeighbour);
}

TEST(ContextsTest, WhatFindsNoRoomIsAskedForAnew) {
  Contexts contexts;
  std::vector<int> places(2 * kNeighbour);
  for (std::uint32_t n = 0; n < places.size(); ++n)
    EXPECT_EQ(contexts.device_of(n + 1, &places[n], three), 3);
  EXPECT_EQ(contexts.device_of(2 * kNeighbour, &places.back(), five), 5);
  EXPECT_EQ(contexts.number_of(&places[0]), 1);
  contexts.forget(1);
  EXPECT_EQ(contexts.number_of(&places[0]), 0);
}

TEST(ContextsTest, OneThatTookTwoPlacesIsKept) {
  Contexts contexts;
  asked_of = &contexts;
  static int other, place;
  constexpr auto kMakesRoom = +[](void*, std::uint32_t* device) -> abi::Result {
    asked_of->forget(7 + kNeighbour);
    (void)asked_of->device_of(7, &place, three);  // as another thread may: the first place is free
    *device = 3;
    return abi::kSuccess;
  };
  EXPECT_EQ(contexts.device_of(7 + kNeighbour, &other, five), 5);
  EXPECT_EQ(contexts.device_of(7, &place, kMakesRoom), 3);
  EXPECT_EQ(contexts.number_of(&place), 7);
  contexts.forget(7);
  EXPECT_EQ(contexts.number_of(&place), 0);
}

constexpr int kThreads = 8, kAddresses = 8, kTimes = 5000;

/// Addresses that lie so that each tells the device.
alignas(64) char memory[kThreads * kAddresses];
abi::Result by_address(void* context, std::uint32_t* device) {
  *device = static_cast<std::uint32_t>(static_cast<char*>(context) - memory);
  std::this_thread::yield();
  return abi::kSuccess;
}

TEST(ContextsTest, EightThreadsThatMakeAndEndContextsSeeTheirOwn) {
  Contexts contexts;
  std::atomic<std::uint32_t> numbers{0};
  std::vector<std::atomic<std::int32_t>> owners(kThreads * kTimes + 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        const std::uint32_t number = ++numbers;
        const std::int32_t device = t * kAddresses + i % kAddresses;
        char* const context = memory + device;
        owners[number] = device;
        if (contexts.device_of(number, context, by_address) != device) ++wrong;
        if (contexts.device_of(number, context, by_address) != device) ++wrong;
        // It may have found no room, and then who was here before is still known.
        const std::uint32_t found = contexts.number_of(context);
        if (found != 0 && owners[found] != device) ++wrong;
        if (i % 3 == 0) continue;  // its end is not heard, and its address comes again
        contexts.forget(number);
        if (contexts.number_of(context) == number) ++wrong;
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ContextsTest, EightThreadsThatMeetInOneContextSeeThatOne) {
  Contexts contexts;
  std::atomic<int> wrong{0};
  constexpr std::uint32_t kContexts = 2000;
  std::barrier meet(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t n = 1; n <= kContexts; ++n) {
        char* const context = memory + n % kAddresses;
        const auto device = static_cast<std::int32_t>(n % kAddresses);
        if (contexts.device_of(n, context, by_address) != device) ++wrong;
        meet.arrive_and_wait();
        if (contexts.number_of(context) != n) ++wrong;
        meet.arrive_and_wait();
        if (t == 0 && n % 3 != 0) contexts.forget(n);
        meet.arrive_and_wait();
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ringmain::cuda
