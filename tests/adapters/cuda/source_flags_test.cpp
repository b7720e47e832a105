// Do records and waits say the flags that they were called with, in the runtime and in the driver?
#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

// cudaEventRecordExternal, cudaEventWaitExternal and the driver's: allowed in a capture only, as a
// node of the graph.
constexpr unsigned kExternal = 1;

class SourceFlagsTest : public SourceFixture {
 protected:
  SourceFlagsTest() { (void)cudaStreamCreate(&stream); }
  ~SourceFlagsTest() override { (void)cudaStreamDestroy(stream); }
  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  }
  void end() {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  }
  cudaStream_t stream = nullptr;
};

/// The first two that were heard: the runtime's call, then the driver's, each with the flag.
template <class Heard>
void expect_external_at_each_layer(const Heard& heard) {
  EXPECT_EQ(heard[0].flags, kExternal);
  EXPECT_EQ(heard[0].layer, Layer::runtime);
  EXPECT_EQ(heard[1].flags, kExternal);
  EXPECT_EQ(heard[1].layer, Layer::driver);
}

TEST_F(SourceFlagsTest, ARecordSaysItsFlags) {
  const auto heard = bus.heard<EventRecord>();
  const Source source = attached(bus);
  begin();
  ASSERT_EQ(cudaEventRecordWithFlags(event, stream, kExternal), cudaSuccess);
  ASSERT_EQ(cuEventRecordWithFlags(reinterpret_cast<CUevent>(event),
                                   reinterpret_cast<CUstream>(stream), kExternal),
            CUDA_SUCCESS);
  ASSERT_EQ(cudaEventRecordWithFlags(event, stream, 0), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  end();
  bus.deliver();
  ASSERT_EQ(heard.size(), 4);
  expect_external_at_each_layer(heard);
  EXPECT_EQ(heard[2].flags, 0);
  EXPECT_EQ(heard[3].flags, 0) << "a call without flags has none";
}

TEST_F(SourceFlagsTest, ARecordThatFailedSaysItsFlagsToo) {
  const auto heard = bus.heard<EventRecord>();
  const Source source = attached(bus);
  ASSERT_NE(cudaEventRecordWithFlags(event, stream, kExternal), cudaSuccess);
  bus.deliver();
  ASSERT_EQ(heard.size(), 1);
  EXPECT_EQ(heard[0].phase, Phase::failed);
  EXPECT_EQ(heard[0].flags, kExternal);
}

TEST_F(SourceFlagsTest, AWaitSaysItsFlags) {
  const auto heard = bus.heard<EventWait>();
  const Source source = attached(bus);
  begin();
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, kExternal), cudaSuccess);
  ASSERT_EQ(cuStreamWaitEvent(reinterpret_cast<CUstream>(stream), reinterpret_cast<CUevent>(event),
                              kExternal),
            CUDA_SUCCESS);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  end();
  bus.deliver();
  ASSERT_EQ(heard.size(), 3);
  expect_external_at_each_layer(heard);
  EXPECT_EQ(heard[2].flags, 0);
}

}  // namespace
}  // namespace ringmain::cuda
