// Can a source of CUDA's events come and go while eight threads call CUDA?
//
// usage: attach_cycles [TIMES=1000]. Answers in one line of JSON; exit status 5 if an event came
// after detach() had returned or calls that were made while it was attached were missed, 6 if CUPTI
// could not be had: then the reason is on standard error.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"

namespace {

using ringmain::Bus;
namespace cuda = ringmain::cuda;

std::atomic<bool> stop{false}, away{true};
std::atomic<std::uint64_t> heard{0}, late{0}, failed{0}, calls{0};

void call_until_told() {
  cudaEvent_t event = nullptr;
  if (cudaEventCreate(&event) != cudaSuccess) ++failed;
  while (!stop) {
    failed += cudaEventRecord(event, nullptr) != cudaSuccess;
    ++calls;
  }
  failed += cudaEventDestroy(event) != cudaSuccess;
}

}  // namespace

int main(int count, char** words) {
  const int times = count > 1 ? std::atoi(words[1]) : 1000;
  if (cudaFree(nullptr) != cudaSuccess) return 4;
  Bus bus;
  auto& records = bus.channel<cuda::EventRecord>();
  const auto listening = records.subscribe_inline([](const cuda::EventRecord&) {
    ++heard;
    late += away;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(call_until_told);
  int attached = 0, missed = 0;
  for (int i = 0; i < times; ++i) {
    away = false;
    auto source = cuda::Source::attach(bus);
    if (!source) {
      std::cerr << source.error().message << '\n';
      break;
    }
    ++attached;
    cudaEvent_t own = nullptr;
    const auto before = heard.load();
    failed += cudaEventCreate(&own) != cudaSuccess || cudaEventRecord(own, nullptr) != cudaSuccess;
    missed += heard == before;
    // The others go on all the time, so they are heard, too, however late it is their turn.
    while (heard < before + 2) std::this_thread::yield();
    if (source.value().detach() != ringmain::Detached::done) ++failed;
    away = true;
    failed += cudaEventDestroy(own) != cudaSuccess;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::cout << "{\"attached\": " << attached << ", \"heard\": " << heard << ", \"late\": " << late
            << ", \"missed\": " << missed << ", \"calls\": " << calls << ", \"failed\": " << failed
            << "}\n";
  if (attached < times) return 6;
  return late == 0 && missed == 0 && failed == 0 ? 0 : 5;
}
