// Each call of CUDA's runtime that makes an event, in fixed numbers, with what it was given.
//
// usage: runtime_calls. Compiled once more with default streams of each thread.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/gpu/programs/ledger.hpp"

namespace {

using gpu::Deed;
using gpu::number;
using gpu::stream_of;

template <class Result>
void did(const char* name, Result result, const Deed& deed) {
  gpu::must(2, name, static_cast<int>(result), deed);
}

/// 7 made in 2 ways, 11 recorded in 2, 5 waited for by streams, 5 by the program.
void events(cudaStream_t stream) {
  std::vector<cudaEvent_t> made(7);
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (i < 4) {
      const auto result = cudaEventCreate(&made[i]);
      did("cudaEventCreate", result, {.handle = number(made[i])});
    } else {
      const unsigned flags = i == 4 ? cudaEventBlockingSync : cudaEventDisableTiming;
      const auto result = cudaEventCreateWithFlags(&made[i], flags);
      did("cudaEventCreateWithFlags", result, {.handle = number(made[i]), .flags = flags});
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const cudaStream_t on = i == 7 ? nullptr : stream;
    const auto result = cudaEventRecord(made[i % 7], on);
    did("cudaEventRecord", result, {.handle = number(made[i % 7]), .stream = stream_of(on)});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const auto result = cudaEventRecordWithFlags(made[i], stream, cudaEventRecordDefault);
    did("cudaEventRecordWithFlags", result,
        {.handle = number(made[i]), .stream = stream_of(stream)});
  }
  for (std::size_t i = 0; i < 5; ++i) {
    const cudaStream_t on = i == 4 ? nullptr : stream;
    const auto result = cudaStreamWaitEvent(on, made[i], 0);
    did("cudaStreamWaitEvent", result, {.handle = number(made[i]), .stream = stream_of(on)});
  }
  for (std::size_t i = 0; i < 5; ++i) {
    did("cudaEventSynchronize", cudaEventSynchronize(made[i]), {.handle = number(made[i])});
  }
  for (const cudaEvent_t event : made) {
    did("cudaEventDestroy", cudaEventDestroy(event), {.handle = number(event)});
  }
}

/// 4 made in 3 ways, 4 waited for; the first two are taken back at the end.
std::vector<cudaStream_t> streams() {
  std::vector<cudaStream_t> made(4);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto result = cudaStreamCreate(&made[i]);
    did("cudaStreamCreate", result, {.handle = number(made[i])});
  }
  const unsigned flags = cudaStreamNonBlocking;
  auto result = cudaStreamCreateWithFlags(&made[2], flags);
  did("cudaStreamCreateWithFlags", result, {.handle = number(made[2]), .flags = flags});
  result = cudaStreamCreateWithPriority(&made[3], flags, -1);
  did("cudaStreamCreateWithPriority", result,
      {.handle = number(made[3]), .flags = flags, .priority = -1});
  for (const cudaStream_t stream : {made[0], made[1], made[2], cudaStream_t{nullptr}}) {
    did("cudaStreamSynchronize", cudaStreamSynchronize(stream), {.handle = stream_of(stream)});
  }
  return made;
}

void device_memory() {
  void* flat = nullptr;
  auto result = cudaMalloc(&flat, 1000);
  did("cudaMalloc", result, {.handle = number(flat), .bytes = 1000});
  void* pitched = nullptr;
  std::size_t pitch = 0;
  result = cudaMallocPitch(&pitched, &pitch, 100, 8);
  did("cudaMallocPitch", result, {.handle = number(pitched), .bytes = pitch * 8});
  cudaPitchedPtr deep{};
  result = cudaMalloc3D(&deep, cudaExtent{100, 8, 3});
  did("cudaMalloc3D", result, {.handle = number(deep.ptr), .bytes = deep.pitch * 8 * 3});
  void* managed = nullptr;
  result = cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal);
  did("cudaMallocManaged", result, {.handle = number(managed), .bytes = 4096});
  for (void* const memory : {flat, pitched, deep.ptr, managed}) {
    did("cudaFree", cudaFree(memory), {.handle = number(memory)});
  }
  did("cudaFree", cudaFree(nullptr), {});  // no deallocation
}

void memory_in_streams_order(cudaStream_t stream) {
  void* memory = nullptr;
  auto result = cudaMallocAsync(&memory, 2000, stream);
  did("cudaMallocAsync", result,
      {.handle = number(memory), .bytes = 2000, .stream = stream_of(stream)});
  cudaMemPool_t pool = nullptr;
  if (cudaDeviceGetDefaultMemPool(&pool, 0) != cudaSuccess) std::exit(4);
  void* pooled = nullptr;
  result = cudaMallocFromPoolAsync(&pooled, 3000, pool, nullptr);
  did("cudaMallocFromPoolAsync", result,
      {.handle = number(pooled), .bytes = 3000, .stream = stream_of(cudaStream_t{nullptr})});
  did("cudaFreeAsync", cudaFreeAsync(memory, stream),
      {.handle = number(memory), .stream = stream_of(stream)});
  did("cudaFreeAsync", cudaFreeAsync(pooled, nullptr),
      {.handle = number(pooled), .stream = stream_of(cudaStream_t{nullptr})});
}

void arrays() {
  const cudaChannelFormatDesc floats{32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t flat = nullptr, deep = nullptr;
  auto result = cudaMallocArray(&flat, &floats, 64, 16, cudaArrayDefault);
  did("cudaMallocArray", result, {.handle = number(flat), .bytes = 64 * 16 * 4});
  result = cudaMalloc3DArray(&deep, &floats, cudaExtent{16, 8, 4}, cudaArrayDefault);
  did("cudaMalloc3DArray", result, {.handle = number(deep), .bytes = 16 * 8 * 4 * 4});
  cudaMipmappedArray_t levels = nullptr;
  result = cudaMallocMipmappedArray(&levels, &floats, cudaExtent{64, 64, 0}, 3, cudaArrayDefault);
  did("cudaMallocMipmappedArray", result, {.handle = number(levels)});
  did("cudaFreeMipmappedArray", cudaFreeMipmappedArray(levels), {.handle = number(levels)});
  did("cudaFreeArray", cudaFreeArray(flat), {.handle = number(flat)});
  did("cudaFreeArray", cudaFreeArray(deep), {.handle = number(deep)});
}

void host_memory() {
  void *pinned = nullptr, *mapped = nullptr;
  auto result = cudaMallocHost(&pinned, 5000);
  did("cudaMallocHost", result, {.handle = number(pinned), .bytes = 5000});
  result = cudaHostAlloc(&mapped, 6000, cudaHostAllocMapped);
  did("cudaHostAlloc", result, {.handle = number(mapped), .bytes = 6000});
  alignas(4096) static char ours[8192];
  result = cudaHostRegister(ours, sizeof ours, cudaHostRegisterDefault);
  did("cudaHostRegister", result, {.handle = number(&ours[0]), .bytes = sizeof ours});
  did("cudaFreeHost", cudaFreeHost(pinned), {.handle = number(pinned)});
  did("cudaFreeHost", cudaFreeHost(mapped), {.handle = number(mapped)});
  did("cudaHostUnregister", cudaHostUnregister(ours), {.handle = number(&ours[0])});
}

/// Which files of CUPTI are loaded? Into the file named by GPU_MAPS.
void tell_of_cupti() {
  const char* const name = std::getenv("GPU_MAPS");
  if (name == nullptr) return;
  std::ifstream maps("/proc/self/maps");
  std::ofstream file(name);
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != std::string::npos && line.find("/libcupti.so", path) != std::string::npos) {
      file << line.substr(path) << '\n';
    }
  }
}

}  // namespace

int main() {
  did("cudaFree", cudaFree(nullptr), {});  // makes the context, and lets the source in
  const std::vector<cudaStream_t> made = streams();
  events(made[0]);
  device_memory();
  memory_in_streams_order(made[2]);
  arrays();
  host_memory();
  for (int i = 0; i < 3; ++i) did("cudaDeviceSynchronize", cudaDeviceSynchronize(), {});
  for (const cudaStream_t stream : made) {
    did("cudaStreamDestroy", cudaStreamDestroy(stream), {.handle = number(stream)});
  }
  tell_of_cupti();
}
