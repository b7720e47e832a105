// A program that forks after it has used CUDA. Its child leaves CUDA alone, as it must, lives on
// for a while and ends; the parent goes on.
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "tests/gpu/programs/ledger.hpp"

namespace {

void record(cudaEvent_t event, int times) {
  for (int i = 0; i < times; ++i) {
    gpu::must(2, "cudaEventRecord", static_cast<int>(cudaEventRecord(event, nullptr)),
              {.handle = gpu::number(event), .stream = 0});
  }
}

}  // namespace

int main() {
  if (cudaFree(nullptr) != cudaSuccess) return 4;
  cudaEvent_t event = nullptr;
  const cudaError_t event_made = cudaEventCreate(&event);
  gpu::must(2, "cudaEventCreate", static_cast<int>(event_made), {.handle = gpu::number(event)});
  record(event, 10);
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] { static_cast<void>(::getppid()); }).join();
    ::_exit(0);
  }
  record(event, 10);
  int status = -1;
  if (::waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "the child ended with %d\n", status);
    return 5;
  }
  record(event, 10);
  gpu::must(2, "cudaEventDestroy", static_cast<int>(cudaEventDestroy(event)),
            {.handle = gpu::number(event)});
}
