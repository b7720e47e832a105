// A source over the libraries that stand in for NVIDIA's, with a bus that delivers when it is told
// to.
#pragma once
#include <utility>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"

// CUPTI's own, which another tool in the process may call.
extern "C" CUptiResult cuptiFinalize();

namespace ringmain::cuda {

class SourceFixture : public testing::Test {
 protected:
  SourceFixture() {
    fake_cuda_reset();
    fake_cupti_reset();
    (void)cudaSetDevice(0);
    (void)cudaEventCreate(&event);
  }
  ~SourceFixture() override {
    (void)cudaEventDestroy(event);
    EXPECT_EQ(fake_cuda_forbidden(), 0) << fake_cuda_forbidden_name();
    EXPECT_EQ(fake_cupti_overlaps(), 0);
    EXPECT_EQ(fake_cupti_dead_handles(), 0);
    EXPECT_EQ(fake_cupti_disabled(), 0);
  }
  void record() const { ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess); }

  static Source attached(Bus& bus, const Options& options = {}) {
    auto made = Source::attach(bus, options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(made).value() : Source();
  }

  cudaEvent_t event = nullptr;
  TestBus bus;
};

}  // namespace ringmain::cuda
