/* A program that is linked with CUDA's runtime and driver, knows nothing of ringmain, and makes a
 * call of each kind: by the runtime in two threads, in a default stream of each thread, and by the
 * driver; some that fail.
 *
 * The functions are declared here, so that it is built without CUDA's headers. Handles that lead
 * nowhere are for the libraries that stand in for CUDA's: the real ones may crash there. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef void* Handle;
typedef unsigned long long Address;
struct Extent {
  size_t width, height, depth;
};
struct Pitched {
  void* memory;
  size_t pitch, x, y;
};
struct Format {
  int x, y, z, w, kind;
};
struct Shape {
  size_t width, height;
  int format;
  unsigned channels;
};

int cudaGetDeviceCount(int*);
int cudaDeviceSynchronize(void);
int cudaEventCreate(Handle*), cudaEventCreateWithFlags(Handle*, unsigned), cudaEventDestroy(Handle);
int cudaEventRecord(Handle, Handle), cudaEventRecord_ptsz(Handle, Handle);
int cudaEventRecordWithFlags(Handle, Handle, unsigned), cudaEventSynchronize(Handle),
    cudaEventQuery(Handle);
int cudaStreamCreate(Handle*), cudaStreamCreateWithFlags(Handle*, unsigned);
int cudaStreamCreateWithPriority(Handle*, unsigned, int), cudaStreamDestroy(Handle);
int cudaStreamSynchronize(Handle), cudaStreamSynchronize_ptsz(Handle);
int cudaStreamWaitEvent(Handle, Handle, unsigned),
    cudaStreamWaitEvent_ptsz(Handle, Handle, unsigned);
int cudaMalloc(void**, size_t), cudaMallocPitch(void**, size_t*, size_t, size_t), cudaFree(void*);
int cudaMalloc3D(struct Pitched*, struct Extent);
int cudaMallocAsync(void**, size_t, Handle), cudaFreeAsync(void*, Handle);
int cudaMallocAsync_ptsz(void**, size_t, Handle), cudaFreeAsync_ptsz(void*, Handle);
int cudaMallocArray(Handle*, const struct Format*, size_t, size_t, unsigned), cudaFreeArray(Handle);
int cudaMallocHost(void**, size_t), cudaHostAlloc(void**, size_t, unsigned), cudaFreeHost(void*);
int cudaHostRegister(void*, size_t, unsigned), cudaHostUnregister(void*);
int cudaMallocManaged(void**, size_t, unsigned);
int cudaStreamBeginCapture(Handle, int), cudaStreamEndCapture(Handle, Handle*);
int cudaGraphInstantiate(Handle*, Handle, unsigned long long), cudaGraphLaunch(Handle, Handle);
int cudaGraphExecDestroy(Handle), cudaGraphDestroy(Handle);
int cuEventCreate(Handle*, unsigned), cuEventRecord(Handle, Handle), cuEventDestroy_v2(Handle);
int cuEventSynchronize(Handle), cuStreamWaitEvent(Handle, Handle, unsigned);
int cuStreamCreate(Handle*, unsigned), cuStreamSynchronize(Handle), cuStreamDestroy_v2(Handle);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(Address*, size_t), cuMemFree_v2(Address),
    cuMemAllocManaged(Address*, size_t, unsigned);
int cuMemAllocAsync(Address*, size_t, Handle), cuMemFreeAsync(Address, Handle);
int cuMemAllocHost_v2(void**, size_t), cuMemFreeHost(void*);
int cuArrayCreate_v2(Handle*, const struct Shape*), cuArrayDestroy(Handle);

static void expect(int wanted, int result, const char* call) {
  if (result == wanted) return;
  printf("%s: %d, not %d\n", call, result, wanted);
  exit(1);
}
#define DO(call) expect(0, call, #call)
#define FAIL(result, call) expect(result, call, #call)

static void events_and_streams(void) {
  Handle event, timed, stream, flagged, urgent;
  DO(cudaStreamCreate(&stream));
  DO(cudaStreamCreateWithFlags(&flagged, 1));
  DO(cudaStreamCreateWithPriority(&urgent, 1, -1));
  DO(cudaEventCreate(&timed));
  DO(cudaEventCreateWithFlags(&event, 2));
  DO(cudaEventRecord(event, stream));
  DO(cudaEventRecordWithFlags(timed, flagged, 0));
  DO(cudaStreamWaitEvent(urgent, event, 0));
  DO(cudaEventQuery(event)); /* of no kind that is told */
  DO(cudaEventSynchronize(event));
  DO(cudaStreamSynchronize(stream));
  DO(cudaDeviceSynchronize());
  DO(cudaEventRecord(event, NULL)); /* the default stream, of all threads and then of this one */
  DO(cudaEventRecord_ptsz(event, NULL));
  DO(cudaStreamWaitEvent_ptsz(NULL, event, 0));
  DO(cudaStreamSynchronize_ptsz(NULL));
  DO(cudaEventDestroy(event));
  DO(cudaEventDestroy(timed));
  DO(cudaStreamDestroy(urgent));
  DO(cudaStreamDestroy(flagged));
  DO(cudaStreamDestroy(stream));
}

static void memory(void) {
  char own[4096];
  const struct Format format = {32, 0, 0, 0, 2};
  const struct Extent extent = {64, 4, 2};
  struct Pitched pitched;
  size_t pitch;
  void* some;
  Handle array, stream;
  int again;
  for (again = 0; again < 3; ++again) { /* an address comes again */
    DO(cudaMalloc(&some, 512));
    DO(cudaFree(some));
  }
  DO(cudaFree(NULL)); /* nothing */
  DO(cudaMallocPitch(&some, &pitch, 100, 8));
  DO(cudaFree(some));
  DO(cudaMalloc3D(&pitched, extent));
  DO(cudaFree(pitched.memory));
  DO(cudaStreamCreate(&stream));
  DO(cudaMallocAsync(&some, 2048, stream));
  DO(cudaFreeAsync(some, stream));
  DO(cudaMallocAsync_ptsz(&some, 1024, NULL));
  DO(cudaFreeAsync_ptsz(some, NULL));
  DO(cudaStreamDestroy(stream));
  DO(cudaMallocArray(&array, &format, 32, 16, 0));
  DO(cudaFreeArray(array));
  DO(cudaMallocHost(&some, 4096));
  DO(cudaFreeHost(some));
  DO(cudaHostAlloc(&some, 8192, 2));
  DO(cudaFreeHost(some));
  DO(cudaHostRegister(own, sizeof own, 0));
  DO(cudaHostUnregister(own));
  DO(cudaMallocManaged(&some, 65536, 1));
  DO(cudaFree(some));
}

static void graphs(void) {
  Handle stream, graph, exec;
  DO(cudaStreamCreate(&stream));
  DO(cudaStreamBeginCapture(stream, 0));
  DO(cudaStreamEndCapture(stream, &graph));
  DO(cudaGraphInstantiate(&exec, graph, 0));
  DO(cudaGraphLaunch(exec, stream));
  DO(cudaGraphExecDestroy(exec));
  DO(cudaGraphDestroy(graph));
  DO(cudaStreamDestroy(stream));
}

static void failures(void) {
  const Handle nowhere = (Handle)0xdead0; /* NOLINT */
  void* some;
  FAIL(2, cudaMalloc(&some, (size_t)1 << 60));
  FAIL(2, cudaMallocAsync(&some, (size_t)1 << 60, NULL));
  FAIL(1, cudaFree(nowhere));
  FAIL(400, cudaEventRecord(nowhere, NULL));
  FAIL(400, cudaStreamWaitEvent(NULL, nowhere, 0));
  FAIL(400, cudaEventSynchronize(nowhere));
  FAIL(400, cudaStreamSynchronize(nowhere));
  FAIL(400, cudaEventDestroy(nowhere));
  FAIL(400, cudaStreamDestroy(nowhere));
}

static void by_the_driver(void) {
  const struct Shape shape = {16, 8, 0x20, 1};
  Handle event, stream, array;
  Address some;
  void* host;
  DO(cuStreamCreate(&stream, 1));
  DO(cuEventCreate(&event, 0));
  DO(cuEventRecord(event, stream));
  DO(cuStreamWaitEvent(stream, event, 0));
  DO(cuEventSynchronize(event));
  DO(cuStreamSynchronize(stream));
  DO(cuCtxSynchronize());
  DO(cuMemAlloc_v2(&some, 256));
  DO(cuMemFree_v2(some));
  DO(cuMemAllocAsync(&some, 128, stream));
  DO(cuMemFreeAsync(some, stream));
  DO(cuMemAllocManaged(&some, 4096, 1));
  DO(cuMemFree_v2(some));
  DO(cuMemAllocHost_v2(&host, 64));
  DO(cuMemFreeHost(host));
  DO(cuArrayCreate_v2(&array, &shape));
  DO(cuArrayDestroy(array));
  DO(cuEventDestroy_v2(event));
  DO(cuStreamDestroy_v2(stream));
}

static void* train(void* nothing) {
  int step;
  for (step = 0; step < 5; ++step) {
    events_and_streams();
    memory();
    failures();
  }
  return nothing;
}

int main(void) {
  pthread_t worker;
  int devices = 0;
  DO(cudaGetDeviceCount(&devices));
  DO(cudaFree(NULL));
  pthread_create(&worker, NULL, train, NULL);
  train(NULL);
  pthread_join(worker, NULL);
  graphs();
  by_the_driver();
  printf("%d device\n", devices);
  return 0;
}
