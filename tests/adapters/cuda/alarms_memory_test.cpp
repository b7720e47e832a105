// Do alarms that find no memory for what they hear make nothing of it? Each allocation fails once.
#include <optional>

#include "events/cuda_use.hpp"

#include "adapters/sources/cuda/cuda_alarms.hpp"

#include "tests/adapters/cuda/source_fixture.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::cuda {
namespace {

using tests::fail_allocations;
using tests::heal_allocations;

class AlarmsMemoryTest : public SourceFixture {
 protected:
  /// Two streams that use a buffer one after the other, and nothing that is left behind.
  void run(Bus& on) const {
    cudaStream_t streams[2] = {};
    cudaEvent_t done = nullptr;
    void* buffer = nullptr;
    for (cudaStream_t& each : streams)
      ASSERT_EQ(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&done), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&buffer, 4096), cudaSuccess);
    for (cudaStream_t each : streams) {
      if (each == streams[1]) {
        ASSERT_EQ(cudaEventRecord(done, streams[0]), cudaSuccess);
        ASSERT_EQ(cudaStreamWaitEvent(each, done, 0), cudaSuccess);
      }
      BufferUse use;
      use.address = reinterpret_cast<std::uintptr_t>(buffer);
      use.bytes = 4096;
      use.stream = reinterpret_cast<std::uintptr_t>(each);
      use.context = fake_cuda_context_uid();
      use.access = Access::write;
      on.channel<BufferUse>().post(use);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaFree(buffer), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(done), cudaSuccess);
    for (cudaStream_t each : streams) ASSERT_EQ(cudaStreamDestroy(each), cudaSuccess);
  }
  /// False: all was heard before the `k`-th allocation.
  bool hear_without(long k) const {
    TestBus own;
    auto said = own.heard<Alarm>();
    Alarms alarms(own);
    Source source = attached(own);
    run(own);
    fail_allocations(k, 1);
    own.deliver();
    const bool reached = heal_allocations();
    EXPECT_TRUE(alarms.finish());
    own.deliver();
    EXPECT_TRUE(said.empty()) << "allocation " << k << ": " << sentence_of(said[0]);
    (void)source.detach();
    return reached;
  }
};

TEST_F(AlarmsMemoryTest, WhereOneIsMissingNothingIsMadeOfIt) {
  long k = 1;
  while (hear_without(k) && !HasFailure()) ++k;
  EXPECT_GT(k, 20) << "alarms allocate next to nothing: the test sees too little";
}

}  // namespace
}  // namespace ringmain::cuda
