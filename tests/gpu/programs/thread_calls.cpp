// Eight threads that record and wait for events of their own, as fast as they can.
//
// usage: thread_calls [EACH=10000]
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/gpu/programs/ledger.hpp"

namespace {

void record_and_wait(int each) {
  using gpu::number;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  const cudaError_t stream_made = cudaStreamCreate(&stream);
  gpu::must(2, "cudaStreamCreate", static_cast<int>(stream_made), {.handle = number(stream)});
  const cudaError_t event_made = cudaEventCreate(&event);
  gpu::must(2, "cudaEventCreate", static_cast<int>(event_made), {.handle = number(event)});
  const gpu::Deed deed{.handle = number(event), .stream = number(stream)};
  for (int i = 0; i < each; ++i) {
    gpu::must(2, "cudaEventRecord", static_cast<int>(cudaEventRecord(event, stream)), deed);
    gpu::must(2, "cudaStreamWaitEvent", static_cast<int>(cudaStreamWaitEvent(stream, event, 0)),
              deed);
  }
  // They are not taken back: another thread's might get the same address, and who was first would
  // be told by neither side's order.
}

}  // namespace

int main(int count, char** words) {
  const int each = count > 1 ? std::atoi(words[1]) : 10000;
  if (cudaFree(nullptr) != cudaSuccess) return 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(record_and_wait, each);
  for (std::thread& thread : threads) thread.join();
}
