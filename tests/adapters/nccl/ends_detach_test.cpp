// May the wrapper be detached, and its bus destroyed, while calls are under way? What a call still
// does with its completions then is looked at, over the stand-ins for NCCL and CUDA.
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <malloc.h>
#include <memory>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/nccl/nccl.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/nccl/fake/fake_nccl.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

std::function<void()> in_operation;

/// From here on what this thread frees is overwritten, so that its use shows itself: where the
/// thread's cache of small blocks is full, and not before.
void spoil_what_is_freed() {
  enum : std::size_t { kCached = 7, kSmall = 1040 };
  (void)::mallopt(M_PERTURB, 0xa5);
  std::array<void*, kCached> each{};
  for (std::size_t bytes = 16; bytes < kSmall; bytes += 16) {
    for (void*& one : each) one = std::malloc(bytes);
    for (void* const one : each) std::free(one);
  }
}

class EndsDetachTest : public testing::Test {
 protected:
  EndsDetachTest() {
    fake_nccl::fake_nccl_reset();
    fake_cuda_reset();
    fake_nccl::fake_nccl_inside([](const char*, const void*) {
      if (in_operation) std::exchange(in_operation, nullptr)();
    });
    bus_ = std::make_unique<Bus>();
    ended_ = bus_->channel<collective::Completed>().subscribe([](const collective::Completed&) {});
    attach();
  }
  ~EndsDetachTest() override {
    fake_nccl::fake_nccl_inside(nullptr);
    in_operation = nullptr;
    if (comm_ != nullptr) (void)nccl::CommDestroy(comm_);
    calls_.detach();
    fake_cuda_settle();
    (void)::mallopt(M_PERTURB, 0);
  }
  void attach() {
    auto made = nccl::Calls::attach(*bus_, {.completions = true});
    ASSERT_TRUE(made);
    calls_ = std::move(made).value();
  }
  void detach_and_destroy_the_bus() {
    calls_.detach();
    ended_.reset();
    bus_.reset();
  }
  nccl::ncclResult_t all_reduce(void* stream = nullptr) {
    static float data;
    return nccl::AllReduce(&data, &data, 1, nccl::ncclFloat32, nccl::ncclSum, comm_,
                           reinterpret_cast<nccl::cudaStream_t>(stream));
  }

  std::unique_ptr<Bus> bus_;
  Subscription ended_;
  nccl::Calls calls_;
  nccl::ncclComm_t comm_ = nullptr;
};

/// Its thread has no context before NCCL has made one, so that none of the completions is its own.
TEST_F(EndsDetachTest, ACallThatIsUnderWayWhenItsBusGoesUsesItNoMore) {
  std::thread([this] {
    EXPECT_EQ(nccl::CommInitAll(&comm_, 1, nullptr), nccl::ncclSuccess);
    in_operation = [this] {
      detach_and_destroy_the_bus();
      EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
    };
    EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
    EXPECT_EQ(bus_, nullptr);
  }).join();
}

/// In the middle of arming.
TEST_F(EndsDetachTest, ACompletionThatIsBeingArmedIsNotDestroyedByADetach) {
  EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(static_cast<int>(cudaStreamCreate(&stream)), 0);
  EXPECT_EQ(nccl::CommInitAll(&comm_, 1, nullptr), nccl::ncclSuccess);
  bool detached = false;
  std::function<void()> detach = [&] {
    spoil_what_is_freed();
    detach_and_destroy_the_bus();
    detached = true;
  };
  fake_cuda_during(
      "cuStreamIsCapturing", [](void* with) { (*static_cast<std::function<void()>*>(with))(); },
      &detach);
  EXPECT_EQ(all_reduce(stream), nccl::ncclSuccess);
  EXPECT_TRUE(detached);
  (void)cudaStreamDestroy(stream);
}

/// Who detaches destroys the bus next, and so has to wait for a thread that makes completions on
/// it.
TEST_F(EndsDetachTest, ADetachWaitsForWhoUsesTheBus) {
  EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
  std::atomic<bool> is_inside{false}, detached{false};
  std::atomic<long> detacher{0};
  std::thread other([&] {
    detacher = ::gettid();
    EXPECT_TRUE(eventually([&] { return is_inside.load(); }));
    calls_.detach();
    detached = true;
  });
  std::function<void()> inside = [&] {
    is_inside = true;
    EXPECT_TRUE(eventually([&] { return detached || is_asleep(detacher); }));
    EXPECT_FALSE(detached);
  };
  fake_cuda_during(
      "cuDeviceGetAttribute", [](void* with) { (*static_cast<std::function<void()>*>(with))(); },
      &inside);
  EXPECT_EQ(nccl::CommInitAll(&comm_, 1, nullptr), nccl::ncclSuccess);
  EXPECT_TRUE(is_inside);
  other.join();
}

TEST_F(EndsDetachTest, ThreadsMayArmWhileTheWrapperIsDetachedAndAttached) {
  EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
  EXPECT_EQ(nccl::CommInitAll(&comm_, 1, nullptr), nccl::ncclSuccess);
  enum : int { kRounds = 8, kEach = 20 };
  std::atomic<bool> over{false};
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
      for (; !over; ++called) EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    const int before = called;
    EXPECT_TRUE(eventually([&] { return called >= before + kEach; }));
    detach_and_destroy_the_bus();
    bus_ = std::make_unique<Bus>();
    ended_ = bus_->channel<collective::Completed>().subscribe([](const collective::Completed&) {});
    attach();
  }
  over = true;
  for (std::thread& one : threads) one.join();
}

}  // namespace
}  // namespace ringmain::tests
