// How long does a step take of a loop that is like training: two streams, events between them,
// memory in the streams' order, and kernels?
//
// usage: training [STEPS=300]. Answers in one line of JSON: the median step in nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/gpu/programs/kernels.hpp"

namespace {

void must(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "CUDA answered %d\n", result);
  std::exit(4);
}
void must(cudaError_t result) {
  must(static_cast<int>(result));
}

struct Loop {
  static constexpr int kCount = 1 << 22;
  cudaStream_t compute = nullptr, copy = nullptr;
  cudaEvent_t ready = nullptr, done = nullptr;
  float* weights = nullptr;

  Loop() {
    must(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    must(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    void* memory = nullptr;
    must(cudaMalloc(&memory, kCount * sizeof(float)));
    weights = static_cast<float*>(memory);
    must(cudaMemset(weights, 0, kCount * sizeof(float)));
  }
  void step() {
    for (int layer = 0; layer < 24; ++layer) {
      void* activations = nullptr;
      must(cudaMallocAsync(&activations, 1 << 20, compute));
      must(gpu_launch_multiply(weights, kCount, compute));
      must(gpu_launch_multiply(static_cast<float*>(activations), (1 << 20) / 4, compute));
      must(cudaEventRecord(ready, compute));
      must(cudaStreamWaitEvent(copy, ready, 0));
      must(gpu_launch_nothing(copy));
      must(cudaEventRecord(done, copy));
      must(cudaStreamWaitEvent(compute, done, 0));
      must(cudaFreeAsync(activations, compute));
    }
    must(cudaStreamSynchronize(compute));
  }
};

}  // namespace

int main(int count, char** words) {
  const int steps = count > 1 ? std::atoi(words[1]) : 300;
  Loop loop;
  for (int i = 0; i < 20; ++i) loop.step();
  std::vector<long long> times;
  for (int i = 0; i < steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    loop.step();
    times.push_back(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
  std::printf("{\"step_ns\": %lld, \"steps\": %d}\n", times[static_cast<std::size_t>(steps) / 2],
              steps);
}
