// A program that trains nothing: it calls CUDA as one that trains would, and knows nothing of who
// listens. It exits with 0 if each call answered as it should.
//
//   train [THREADS [STEPS]]
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/adapters/cuda/fakes/cuda_types.hpp"

namespace {

void expect(cudaError_t answer, cudaError_t wanted, const char* call) {
  if (answer == wanted) return;
  std::fprintf(stderr, "train: %s answered %d\n", call, static_cast<int>(answer));
  std::_Exit(1);
}
#define DO(call) expect(call, cudaSuccess, #call)

constexpr std::size_t kBytes = 1 << 20;

void use_memory_of_each_class(cudaStream_t stream) {
  void *device = nullptr, *ordered = nullptr, *pooled = nullptr, *pinned = nullptr,
       *mapped = nullptr, *managed = nullptr, *pitched = nullptr, *shared = nullptr;
  cudaMemPool_t pool = nullptr;
  std::size_t pitch = 0;
  cudaPitchedPtr box{};
  DO(cudaMalloc(&device, kBytes));
  DO(cudaMallocPitch(&pitched, &pitch, 1000, 10));
  DO(cudaMalloc3D(&box, {100, 10, 2}));
  DO(cudaMallocAsync(&ordered, 2 * kBytes, stream));
  DO(cudaDeviceGetDefaultMemPool(&pool, 0));
  DO(cudaMallocFromPoolAsync(&pooled, 3 * kBytes, pool, stream));
  DO(cudaMallocHost(&pinned, 4096));
  DO(cudaHostAlloc(&mapped, 8192, cudaHostAllocMapped));
  DO(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
  static_cast<char*>(managed)[0] = static_cast<char*>(pinned)[0] = 1;
  std::vector<char> own(16384);
  DO(cudaHostRegister(own.data(), own.size(), 0));
  cudaIpcMemHandle_t handle{};
  DO(cudaIpcGetMemHandle(&handle, device));
  // Memory of this very process: the real runtime refuses that, and this program goes on.
  if (cudaIpcOpenMemHandle(&shared, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) {
    DO(cudaIpcCloseMemHandle(shared));
  } else {
    (void)cudaGetLastError();
  }
  DO(cudaHostUnregister(own.data()));
  DO(cudaFree(managed));
  DO(cudaFreeHost(mapped));
  DO(cudaFreeHost(pinned));
  DO(cudaFreeAsync(pooled, stream));
  DO(cudaFreeAsync(ordered, stream));
  DO(cudaStreamSynchronize(stream));
  DO(cudaFree(box.ptr));
  DO(cudaFree(pitched));
  DO(cudaFree(device));
}

void use_arrays() {
  const cudaChannelFormatDesc bytes{8, 0, 0, 0, cudaChannelFormatKindSigned};
  cudaArray_t flat = nullptr, box = nullptr;
  cudaMipmappedArray_t levels = nullptr;
  DO(cudaMallocArray(&flat, &bytes, 64, 32, 0));
  DO(cudaMalloc3DArray(&box, &bytes, {16, 8, 4}, 0));
  DO(cudaMallocMipmappedArray(&levels, &bytes, {64, 64, 0}, 3, 0));
  DO(cudaFreeMipmappedArray(levels));
  DO(cudaFreeArray(box));
  DO(cudaFreeArray(flat));
}

void fail_as_programs_do() {
  void* too_much = nullptr;
  expect(cudaMalloc(&too_much, std::size_t{1} << 60), cudaErrorMemoryAllocation, "cudaMalloc");
  expect(cudaGetLastError(), cudaErrorMemoryAllocation, "cudaGetLastError");
  DO(cudaFree(nullptr));
}

void capture_and_launch(cudaStream_t stream, cudaEvent_t event) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  DO(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  DO(cudaEventRecord(event, stream));
  DO(cudaStreamEndCapture(stream, &graph));
  DO(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) DO(cudaGraphLaunch(exec, stream));
  DO(cudaStreamSynchronize(stream));
  DO(cudaGraphExecDestroy(exec));
  DO(cudaGraphDestroy(graph));
}

void train(int steps) {
  cudaStream_t compute = nullptr, copy = nullptr, urgent = nullptr;
  DO(cudaStreamCreate(&compute));
  DO(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
  DO(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -1));
  for (int step = 0; step < steps; ++step) {
    cudaEvent_t copied = nullptr, done = nullptr;
    DO(cudaEventCreate(&copied));
    DO(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    void* batch = nullptr;
    DO(cudaMallocAsync(&batch, kBytes, copy));
    DO(cudaEventRecord(copied, copy));
    DO(cudaStreamWaitEvent(compute, copied, 0));
    DO(cudaEventRecordWithFlags(done, compute, 0));
    DO(cudaStreamWaitEvent(copy, done, 0));
    DO(cudaFreeAsync(batch, copy));
    DO(cudaEventRecord(done, nullptr));
    DO(cudaEventSynchronize(done));
    DO(cudaStreamSynchronize(nullptr));
    DO(cudaEventDestroy(done));
    DO(cudaEventDestroy(copied));
  }
  DO(cudaStreamDestroy(urgent));
  DO(cudaStreamDestroy(copy));
  DO(cudaStreamDestroy(compute));
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 2,
            steps = count > 2 ? std::atoi(words[2]) : 3;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  DO(cudaFree(nullptr));  // the usual way to begin
  DO(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DO(cudaEventCreate(&event));
  use_memory_of_each_class(stream);
  use_arrays();
  fail_as_programs_do();
  capture_and_launch(stream, event);
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i) others.emplace_back(train, steps);
  for (std::thread& other : others) other.join();
  DO(cudaDeviceSynchronize());
  DO(cudaEventDestroy(event));
  DO(cudaStreamDestroy(stream));
  DO(cudaDeviceReset());
  return 0;
}
