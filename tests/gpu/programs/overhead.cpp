// What does a call of CUDA's cost with nobody, somebody, and ringmain listening?
//
// usage: overhead WAY THREADS CALLS. WAY is one of none, loaded (libcupti), idle (subscribed,
// nothing enabled), runtime, driver, both (a callback that does nothing), bus-0, bus-1, bus-4
// (ringmain's source with that many subscribers). Answers in one line of JSON: nanoseconds for each
// call, the median of 9 rounds, and what memory the process had more of once it listened.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_runtime_api.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"
#include "adapters/sources/cuda/cupti_abi.hpp"
#ifdef GPU_HAS_KERNELS
#include "tests/gpu/programs/kernels.hpp"
#endif

namespace {

namespace cuda = ringmain::cuda;
namespace abi = ringmain::cuda::abi;

void must(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "CUDA answered %d\n", result);
  std::exit(4);
}

/// What is measured, of one thread.
struct Worker {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  Worker() {
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    must(cudaEventRecord(event, stream));
  }
};
struct Question {
  const char* name;
  std::function<void(Worker&)> ask;
};
const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      {"cudaEventRecord", [](Worker& w) { must(cudaEventRecord(w.event, w.stream)); }},
      {"cudaStreamWaitEvent", [](Worker& w) { must(cudaStreamWaitEvent(w.stream, w.event, 0)); }},
      {"cudaMallocAsync+cudaFreeAsync",
       [](Worker& w) {
         must(cudaMallocAsync(&w.memory, 4096, w.stream));
         must(cudaFreeAsync(w.memory, w.stream));
       }},
      {"cudaEventQuery (not heard)",
       [](Worker& w) {
         const cudaError_t answer = cudaEventQuery(w.event);
         if (answer != cudaErrorNotReady) must(answer);
       }},
#ifdef GPU_HAS_KERNELS
      {"kernel launch (not heard)", [](Worker& w) { must(gpu_launch_nothing(w.stream)); }},
#endif
  };
  return all;
}

void null_callback(void*, abi::Domain, std::uint32_t, const void*) {}

struct CuptiByHand {
  void* library = nullptr;
  abi::Subscriber subscriber = nullptr;

  template <class Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library, name));
  }
  void load() {
    library = ::dlopen("libcupti.so.13", RTLD_NOW);
    if (library == nullptr) library = ::dlopen("libcupti.so.12", RTLD_NOW);
    std::uint32_t version = 0;
    if (library == nullptr || find<abi::GetVersionFn>("cuptiGetVersion")(&version) != 0) {
      std::fprintf(stderr, "there is no CUPTI\n");
      std::exit(3);
    }
  }
  /// The calls that the questions make, and what the runtime makes of them.
  void listen(bool runtime, bool driver) {
    load();
    must(find<abi::SubscribeFn>("cuptiSubscribe")(&subscriber, null_callback, nullptr));
    auto* const enable = find<abi::EnableCallbackFn>("cuptiEnableCallback");
    for (const std::uint32_t cbid : {135u, 147u, 373u, 375u}) {
      if (runtime) must(enable(1, subscriber, abi::kRuntime, cbid));
    }
    for (const std::uint32_t cbid : {119u, 295u, 598u, 600u}) {
      if (driver) must(enable(1, subscriber, abi::kDriver, cbid));
    }
  }
};

/// Ringmain's source, heard by as many subscribers to each of the four kinds.
class Listeners {
 public:
  void listen(int how_many) {
    bus_.emplace();
    for (int i = 0; i < how_many; ++i) {
      hear<cuda::EventRecord>();
      hear<cuda::EventWait>();
      hear<cuda::MemoryAllocation>();
      hear<cuda::MemoryDeallocation>();
    }
    auto source = cuda::Source::attach(*bus_);
    if (!source) {
      std::fprintf(stderr, "%s\n", source.error().message.c_str());
      std::exit(3);
    }
    source_ = std::move(source).value();
  }

 private:
  template <class E>
  void hear() {
    kept_.push_back(bus_->channel<E>().subscribe([](const E&) {}));
  }
  std::optional<ringmain::Bus> bus_;
  std::vector<ringmain::Subscription> kept_;
  cuda::Source source_;
};

double one_round(const Question& question, Worker& worker, int calls) {
  // A thread's first event takes its lane, once; that is not what a call costs.
  question.ask(worker);
  must(cudaStreamSynchronize(worker.stream));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) question.ask(worker);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  must(cudaStreamSynchronize(worker.stream));
  return took.count() / calls;
}

double median(std::vector<double> figures) {
  std::nth_element(figures.begin(), figures.begin() + static_cast<long>(figures.size() / 2),
                   figures.end());
  return figures[figures.size() / 2];
}

long resident_kib() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * (::sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string way = words[1];
  const int threads = std::atoi(words[2]), calls = std::atoi(words[3]);
  must(cudaFree(nullptr));
  const long before = resident_kib();
  CuptiByHand cupti;
  Listeners listeners;
  if (way == "loaded") cupti.load();
  if (way == "idle") cupti.listen(false, false);
  if (way == "runtime" || way == "both" || way == "driver") {
    cupti.listen(way != "driver", way != "runtime");
  }
  if (way.rfind("bus-", 0) == 0) listeners.listen(std::atoi(way.c_str() + 4));
  std::vector<Worker> workers(static_cast<std::size_t>(threads));
  const long more = resident_kib() - before;
  std::printf("{\"resident_kib\": %ld", more);
  for (const Question& question : questions()) {
    std::vector<double> rounds(9);
    for (double& round : rounds) {
      std::vector<double> each(workers.size());
      std::vector<std::thread> running;
      for (std::size_t i = 0; i < workers.size(); ++i) {
        running.emplace_back([&, i] { each[i] = one_round(question, workers[i], calls); });
      }
      for (std::thread& one : running) one.join();
      round = median(each);
    }
    std::printf(", \"%s\": %.1f", question.name, median(rounds));
  }
  std::printf("}\n");
}
