// What does a job of one or two ranks ask of NCCL, case by case? NCCL's events of each case are
// then compared with what is known of it (facts are in nccl_rows.py).
//
// usage: nccl_calls version | nccl_calls RANK RANKS MEETING CASE …
// A line of JSON for each case: how many calls, what NCCL answered where it refused. Each case has
// a communicator of its own, named as the case is. Exit status 77: no NCCL or no GPU; 4, 5: CUDA or
// NCCL refused what must go; 6: a case that NCCL is too old for was asked for with others.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include "tests/gpu/programs/nccl_communicator.hpp"

namespace {

using namespace ringmain::nccl;  // NOLINT: NCCL's own names
using gpu::Communicator;
using gpu::Job;
using gpu::Memory;

constexpr int kTimes = 5;
constexpr int kReplays = 1000;
constexpr std::size_t kCount = 1 << 20;

struct Told {
  int calls = 0;
  int result = 0;  // where NCCL refused
  const char* refused = "";
};

/// A call that this NCCL may not have, or may refuse here: then the case is over.
#define GPU_TRY(told, function, ...)                                     \
  do {                                                                   \
    (told).refused = "nccl" #function;                                   \
    if (job.nccl.function == nullptr) return (told).result = -1, (told); \
    (told).result = static_cast<int>(job.nccl.function(__VA_ARGS__));    \
    if ((told).result != 0) return (told);                               \
    (told).refused = "";                                                 \
  } while (false)

int all_reduce(const Job& job, const Communicator& on, void* memory, std::size_t count) {
  return static_cast<int>(
      job.nccl.AllReduce(memory, memory, count, ncclFloat32, ncclSum, on.comm, on.stream));
}
int to_self(const Job& job, const Communicator& on, void* memory, std::size_t count) {
  (void)job.nccl.GroupStart();
  (void)job.nccl.Send(memory, count / 2, ncclFloat32, job.rank, on.comm, on.stream);
  (void)job.nccl.Recv(static_cast<float*>(memory) + count / 2, count / 2, ncclFloat32, job.rank,
                      on.comm, on.stream);
  return static_cast<int>(job.nccl.GroupEnd());
}

template <class Call>
Told repeated(const Job& job, const char* name, Call call) {
  Told told;
  const Communicator on(job, name);
  const Memory memory(kCount * sizeof(float) * 2);
  for (; told.calls < kTimes && told.result == 0; ++told.calls) told.result = call(on, memory.at);
  if (told.result != 0) told.refused = name;
  return told;
}

Told alone(const Job& job) {
  return repeated(job, "alone",
                  [&](auto& on, void* at) { return all_reduce(job, on, at, kCount); });
}
Told self(const Job& job) {
  return repeated(job, "self", [&](auto& on, void* at) { return to_self(job, on, at, kCount); });
}
Told reduce(const Job& job) {
  return repeated(job, "reduce",
                  [&](auto& on, void* at) { return all_reduce(job, on, at, kCount); });
}
Told nothing(const Job& job) {
  return repeated(job, "nothing", [&](auto& on, void* at) { return all_reduce(job, on, at, 0); });
}
Told broadcast(const Job& job) {
  return repeated(job, "broadcast", [&](auto& on, void* at) {
    return static_cast<int>(job.nccl.Broadcast(at, at, kCount, ncclFloat32, 0, on.comm, on.stream));
  });
}
Told all_to_all(const Job& job) {
  if (job.nccl.AlltoAll == nullptr) return {0, -1, "ncclAlltoAll"};
  return repeated(job, "all_to_all", [&](auto& on, void* at) {
    return static_cast<int>(job.nccl.AlltoAll(at, static_cast<float*>(at) + kCount, kCount / 2,
                                              ncclFloat32, on.comm, on.stream));
  });
}

/// One call in a graph that is launched a thousand times.
template <class Call>
Told graph(const Job& job, const char* name, Call call) {
  Told told;
  const Communicator on(job, name);
  const Memory memory(kCount * sizeof(float));
  gpu::must_cuda(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal), "capture");
  told.result = call(on, memory.at);
  cudaGraph_t captured = nullptr;
  gpu::must_cuda(cudaStreamEndCapture(on.stream, &captured), "cudaStreamEndCapture");
  if (told.result != 0) return told.refused = name, told;
  told.calls = 1;
  cudaGraphExec_t exec = nullptr;
  gpu::must_cuda(cudaGraphInstantiate(&exec, captured, 0), "cudaGraphInstantiate");
  for (int i = 0; i < kReplays; ++i)
    gpu::must_cuda(cudaGraphLaunch(exec, on.stream), "cudaGraphLaunch");
  gpu::must_cuda(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
  (void)cudaGraphExecDestroy(exec);
  (void)cudaGraphDestroy(captured);
  return told;
}
Told self_graph(const Job& job) {
  return graph(job, "self_graph", [&](auto& on, void* at) { return to_self(job, on, at, 1024); });
}
Told reduce_graph(const Job& job) {
  return graph(job, "reduce_graph",
               [&](auto& on, void* at) { return all_reduce(job, on, at, 1024); });
}

/// A group of three calls on two communicators.
Told several(const Job& job) {
  Told told;
  const Communicator first(job, "several"), second(job, "several_second");
  const Memory memory(3 * 1024 * sizeof(float));
  auto* const at = static_cast<float*>(memory.at);
  (void)job.nccl.GroupStart();
  (void)all_reduce(job, first, at, 1024);
  (void)all_reduce(job, second, at + 1024, 1024);
  (void)all_reduce(job, first, at + 2048, 1024);
  told.result = static_cast<int>(job.nccl.GroupEnd());
  told.calls = 3;
  if (told.result != 0) told.refused = "ncclGroupEnd";
  return told;
}

constexpr int kSymmetric = 1;       // NCCL_WIN_COLL_SYMMETRIC
constexpr int kNoThreadBlocks = 2;  // NCCL_CTA_POLICY_ZERO

/// Memory that all ranks have registered as theirs; it stays to the end of the process.
Told window(const Job& job, const Communicator& on, void** memory, ncclWindow_t* made) {
  Told told;
  const std::size_t bytes = 2 * kCount * sizeof(float);
  GPU_TRY(told, MemAlloc, memory, bytes);
  GPU_TRY(told, CommWindowRegister, on.comm, *memory, bytes, made, kSymmetric);
  return told;
}
Told symmetric(const Job& job) {
  const Communicator on(job, "symmetric");
  void* memory = nullptr;
  ncclWindow_t made = nullptr;
  Told told = window(job, on, &memory, &made);
  for (; told.calls < kTimes && told.result == 0; ++told.calls)
    told.result = all_reduce(job, on, memory, 1024);
  return told;
}
Told copy_engine(const Job& job) {
  const Communicator on(job, "copy_engine", kNoThreadBlocks);
  void* memory = nullptr;
  ncclWindow_t made = nullptr;
  Told told = window(job, on, &memory, &made);
  auto* const at = static_cast<float*>(memory);
  for (; told.calls < kTimes && told.result == 0; ++told.calls)
    told.result = static_cast<int>(
        job.nccl.AllGather(at, at + kCount, kCount / 2, ncclFloat32, on.comm, on.stream));
  return told;
}
/// Each puts to the other and waits for what it was put.
Told one_sided(const Job& job) {
  const Communicator on(job, "one_sided");
  void* memory = nullptr;
  ncclWindow_t made = nullptr;
  Told told = window(job, on, &memory, &made);
  if (told.result != 0) return told;
  const int other = (job.rank + 1) % job.ranks;
  for (; told.calls < kTimes; ++told.calls) {
    GPU_TRY(told, PutSignal, memory, 1024, ncclFloat32, other, made, kCount * sizeof(float), 0, 0,
            0, on.comm, on.stream);
    ncclWaitSignalDesc_t wanted{};
    wanted.opCnt = 1;
    wanted.peer = other;
    GPU_TRY(told, WaitSignal, 1, &wanted, on.comm, on.stream);
  }
  return told;
}

/// An abort under work: of one rank, behind a stream that stands; of several, of an operation that
/// the others never join.
Told abort(const Job& job) {
  Told told;
  Communicator on(job, "abort");
  const Memory memory(kCount * sizeof(float));
  std::promise<void> goes_on;
  std::future<void> until = goes_on.get_future();
  if (job.ranks == 1) {
    gpu::must_cuda(
        cudaLaunchHostFunc(
            on.stream, [](void* wait) { static_cast<std::future<void>*>(wait)->wait(); }, &until),
        "cudaLaunchHostFunc");
    told.result = to_self(job, on, memory.at, kCount);
  } else if (job.rank == 0) {
    told.result = all_reduce(job, on, memory.at, kCount);
  }
  told.calls = job.rank == 0 ? 1 : 0;
  // The kernel, if it can begin, has begun by then, and NCCL has seen it.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::thread aborts([&] { (void)job.nccl.CommAbort(on.comm); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  goes_on.set_value();
  aborts.join();
  on.comm = nullptr;
  return told;
}

/// Nanoseconds for a call, while the GPU is behind.
Told cost(const Job& job) {
  Told told;
  const Communicator on(job, "cost");
  const Memory memory(kCount * sizeof(float));
  const auto call = [&] {
    told.result |=
        job.ranks == 1 ? to_self(job, on, memory.at, 1024) : all_reduce(job, on, memory.at, 1024);
  };
  for (int i = 0; i < 100; ++i) call();
  gpu::must_cuda(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
  const auto begin = std::chrono::steady_clock::now();
  for (; told.calls < 2000; ++told.calls) call();
  const std::chrono::duration<double, std::nano> calls = std::chrono::steady_clock::now() - begin;
  gpu::must_cuda(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
  const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begin;
  std::printf("{\"case\": \"figures\", \"call_ns\": %.1f, \"done_ns\": %.1f}\n",
              calls.count() / told.calls, all.count() / told.calls);
  return told;
}

struct Case {
  const char* name;
  Told (*play)(const Job&);
};
constexpr Case kCases[] = {{"alone", alone},
                           {"self", self},
                           {"self_graph", self_graph},
                           {"reduce", reduce},
                           {"nothing", nothing},
                           {"broadcast", broadcast},
                           {"all_to_all", all_to_all},
                           {"reduce_graph", reduce_graph},
                           {"several", several},
                           {"symmetric", symmetric},
                           {"copy_engine", copy_engine},
                           {"one_sided", one_sided},
                           {"abort", abort},
                           {"cost", cost}};

int play(const Job& job, const std::string& name) {
  for (const Case& one : kCases) {
    if (name != one.name) continue;
    const Told told = one.play(job);
    std::printf("{\"case\": \"%s\", \"calls\": %d, \"result\": %d, \"refused\": \"%s\"}\n",
                one.name, told.calls, told.result, told.refused);
    std::fflush(stdout);
    return 0;
  }
  std::fprintf(stderr, "there is no case '%s'\n", name.c_str());
  return 2;
}

}  // namespace

int main(int count, char** words) {
  if (count == 1)
    return std::fprintf(stderr, "usage: nccl_calls version | RANK RANKS MEETING CASE …\n"), 2;
  GpuNccl nccl;
  std::printf("{\"case\": \"version\", \"version\": %d}\n", nccl.version);
  std::fflush(stdout);
  if (count == 2) return 0;
  if (count < 5) return 2;
  gpu::take_gpu();
  const Job job{nccl, std::atoi(words[1]), std::atoi(words[2]), words[3]};
  for (int i = 4; i < count; ++i) {
    if (const int status = play(job, words[i])) return status;
  }
  return 0;
}
