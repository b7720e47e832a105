// Calls of CUDA's runtime that fail as they are documented to: more memory than any device has, a
// recording into a graph that nobody captures. None of them leaves the device in doubt.
#include <cuda_runtime_api.h>

#include "tests/gpu/programs/ledger.hpp"

int main() {
  using gpu::ledger;
  using gpu::number;
  gpu::must(2, "cudaFree", static_cast<int>(cudaFree(nullptr)), {});
  cudaEvent_t event = nullptr;
  const cudaError_t event_made = cudaEventCreate(&event);
  gpu::must(2, "cudaEventCreate", static_cast<int>(event_made), {.handle = number(event)});
  int failures = 0;
  for (int i = 0; i < 3; ++i) {
    constexpr std::size_t kTooMuch = std::size_t{1} << 50;
    void* memory = nullptr;
    const auto result = static_cast<int>(cudaMalloc(&memory, kTooMuch));
    ledger().add(2, "cudaMalloc", result, {.bytes = kTooMuch});
    failures += result == cudaErrorMemoryAllocation;
  }
  const unsigned flags = cudaEventRecordExternal;
  const auto result = static_cast<int>(cudaEventRecordWithFlags(event, nullptr, flags));
  ledger().add(2, "cudaEventRecordWithFlags", result,
               {.handle = number(event), .stream = 0, .flags = flags});
  failures += result != 0;
  static_cast<void>(cudaGetLastError());
  gpu::must(2, "cudaEventDestroy", static_cast<int>(cudaEventDestroy(event)),
            {.handle = number(event)});
  std::printf("%d calls failed\n", failures);
  return failures == 4 ? 0 : 5;
}
