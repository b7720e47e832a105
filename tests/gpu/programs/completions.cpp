// Does the GPU's own word come once, soon, and also if there will be none?
//
// usage: completions latency STRATEGY TIMES | many TICKETS | error | capture. Answers in one line
// of JSON. Exit status 4: CUDA refused something; 5: what must hold does not; 6: completions could
// not be had. Over the libraries that stand in for CUDA's the GPU's work is what they can hold.
#include "adapters/sources/cuda/completions.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "bus/bus.hpp"
#ifdef GPU_HAS_KERNELS
#include "tests/gpu/programs/kernels.hpp"
#endif

namespace {

using namespace ringmain;
using Clock = std::chrono::steady_clock;

void must(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "CUDA answered %d\n", result);
  std::exit(4);
}
[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(5);
}

cuda::Completions made(Bus& bus, const cuda::CompletionsOptions& options = {}) {
  auto result = cuda::Completions::make(bus, options);
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(6);
}

/// Work that runs until it is told to end: a kernel, or what stands in for one.
class Held {
 public:
  Held() {
#ifdef GPU_HAS_KERNELS
    must(cudaHostAlloc(reinterpret_cast<void**>(&flags_), 2 * sizeof(int), cudaHostAllocMapped));
#else
    hold_ = reinterpret_cast<decltype(hold_)>(::dlsym(RTLD_DEFAULT, "fake_cuda_hold"));
    finish_ = reinterpret_cast<decltype(finish_)>(::dlsym(RTLD_DEFAULT, "fake_cuda_finish"));
    if (hold_ == nullptr || finish_ == nullptr) wrong("this was built without kernels");
#endif
  }
  void begin(cudaStream_t on) {
#ifdef GPU_HAS_KERNELS
    __atomic_store_n(&flags_[0], 0, __ATOMIC_RELEASE);
    __atomic_store_n(&flags_[1], 0, __ATOMIC_RELEASE);
    must(gpu_launch_wait(flags_, on));
#else
    number_ = hold_(on);
#endif
  }
  void finish() {
#ifdef GPU_HAS_KERNELS
    __atomic_store_n(&flags_[0], 1, __ATOMIC_RELEASE);
#else
    finish_(number_);
#endif
  }
  /// The kernel's last act, which it does just before its stream goes on.
  [[nodiscard]] bool said() const {
#ifdef GPU_HAS_KERNELS
    return __atomic_load_n(&flags_[1], __ATOMIC_ACQUIRE) != 0;
#else
    return true;
#endif
  }

 private:
#ifdef GPU_HAS_KERNELS
  int* flags_ = nullptr;
#else
  std::uint64_t (*hold_)(void*) = nullptr;
  void (*finish_)(std::uint64_t) = nullptr;
  std::uint64_t number_ = 0;
#endif
};

double at(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

/// From the host's word to a kernel until the kernel's own word is read (`baseline`), or until the
/// completion behind it is heard by an inline subscriber.
int latency(const std::string& strategy, int times) {
  Bus bus;
  cuda::CompletionsOptions options;
  const bool baseline = strategy == "baseline";
  if (strategy == "memory_writes_spin") options.spin_us = microseconds(1'000'000'000);
  options.strategy = strategy == "event_queries"    ? cuda::Strategy::event_queries
                     : strategy == "host_functions" ? cuda::Strategy::host_functions
                                                    : cuda::Strategy::memory_writes;
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::atomic<int> heard{0};
  std::atomic<Clock::time_point> when{};
  const auto hears = bus.channel<cuda::Completion>().subscribe_inline([&](const auto&) {
    when = Clock::now();
    ++heard;
  });
  cuda::Completions completions = made(bus, options);
  Held held;
  std::vector<double> us;
  for (int i = 1; i <= times; ++i) {
    held.begin(stream);
    if (!baseline && !completions.arm(stream, static_cast<std::uint64_t>(i))) wrong("not armed");
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // a short step of training
    const Clock::time_point since = Clock::now();
    held.finish();
    if (baseline) {
      while (!held.said()) {
      }
      when = Clock::now();
    } else {
      while (heard != i) std::this_thread::yield();
    }
    us.push_back(std::chrono::duration<double, std::micro>(when.load() - since).count());
    must(cudaStreamSynchronize(stream));
  }
  std::sort(us.begin(), us.end());
  std::printf(
      "{\"strategy\": \"%s\", \"times\": %d, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": "
      "%.2f}\n",
      strategy.c_str(), times, at(us, 0.5), at(us, 0.99), at(us, 0.999));
  return 0;
}

/// Tickets on 16 streams from 4 threads through a small queue, while another thread allocates and
/// frees: each once, in order for each lane.
int many(std::uint64_t tickets) {
  constexpr unsigned kStreams = 16, kThreads = 4;
  Bus bus;
  std::map<std::uint32_t, std::uint64_t> last;
  std::atomic<std::uint64_t> heard{0}, wrong_order{0}, failed{0};
  const auto hears = bus.channel<cuda::Completion>().subscribe([&](const cuda::Completion& said) {
    wrong_order += said.ticket <= last[said.lane];
    last[said.lane] = said.ticket;
    failed += said.outcome != cuda::Outcome::completed;
    ++heard;
  });
  cuda::Completions completions = made(bus, {.capacity_events = 64});
  std::atomic<std::uint64_t> given{0};
  std::atomic<bool> armed{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      std::vector<cudaStream_t> own(kStreams / kThreads);
      for (auto& stream : own) must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (std::uint64_t n = 0; n < tickets / kThreads;) {
        const cuda::Armed one = completions.arm(own[n % own.size()], n);
        if (one)
          ++n, ++given;
        else if (one.code != cuda::ArmCode::full)
          wrong(std::string(to_string(one.code)));
        else
          std::this_thread::yield();
      }
      for (auto& stream : own) must(cudaStreamDestroy(stream));
    });
  }
  std::thread allocates([&] {
    while (!armed) {
      void* memory = nullptr;
      must(cudaMalloc(&memory, 1 << 20));
      must(cudaFree(memory));
      // The driver holds a lock in both that arming needs, too: on a real one for a millisecond.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  for (auto& thread : threads) thread.join();
  while (heard != given) std::this_thread::yield();
  armed = true;
  allocates.join();
  if (completions.end(std::chrono::seconds(10)) != Detached::done) wrong("it did not end");
  const auto figures = completions.figures();
  if (wrong_order != 0 || failed != 0 || figures.completed != given || heard != given)
    wrong("some were lost, failed, twice or out of order");
  std::printf("{\"tickets\": %llu, \"lanes\": %u, \"strategy\": \"%s\"}\n",
              static_cast<unsigned long long>(given), figures.lanes,
              std::string(to_string(figures.strategy)).c_str());
  return 0;
}

/// An error of the GPU's with 1,000 tickets armed: all fail, and soon.
int error() {
  Bus bus;
  std::atomic<int> failed{0}, completed{0}, result{0};
  const auto hears = bus.channel<cuda::Completion>().subscribe([&](const cuda::Completion& said) {
    result = said.result;
    ++(said.outcome == cuda::Outcome::failed ? failed : completed);
  });
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cuda::Completions completions = made(bus, {.lane_tickets = 1024});
  Held held;
  held.begin(stream);
#ifdef GPU_HAS_KERNELS
  must(gpu_launch_fault(stream));
#endif
  for (std::uint64_t n = 0; n < 1000; ++n) {
    if (!completions.arm(stream, n)) wrong("not armed");
  }
  const Clock::time_point since = Clock::now();
#ifdef GPU_HAS_KERNELS
  held.finish();
#else
  using Break = void(int);
  auto* const breaks = reinterpret_cast<Break*>(::dlsym(RTLD_DEFAULT, "fake_cuda_break"));
  if (breaks == nullptr) wrong("this was built without kernels");
  breaks(700);
#endif
  while (failed + completed != 1000) std::this_thread::yield();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - since).count();
  const cuda::Armed late = completions.arm(stream, 1);
  if (failed != 1000 || result == 0) wrong("not all have failed");
  if (late) wrong("something was armed after the error");
  if (completions.end(std::chrono::seconds(1)) != Detached::done) wrong("it did not end");
  std::printf("{\"failed\": %d, \"result\": %d, \"ms\": %.1f, \"armed later\": \"%s\"}\n",
              failed.load(), result.load(), ms, std::string(to_string(late.code)).c_str());
  return 0;
}

/// A capture in global mode while the poller asks; arming on the capturing stream; a node over 100
/// launches.
int capture() {
  Bus bus;
  std::atomic<int> nodes{0}, others{0};
  const auto hears = bus.channel<cuda::Completion>().subscribe([&](const cuda::Completion& said) {
    ++(said.mechanism == cuda::Mechanism::host_node ? nodes : others);
  });
  cudaStream_t works = nullptr, captures = nullptr;
  must(cudaStreamCreateWithFlags(&works, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&captures, cudaStreamNonBlocking));
  cuda::Completions completions = made(bus, {.watch_us = microseconds(1)});
  Held held;
  held.begin(works);
  if (!completions.arm(works, 1)) wrong("not armed");
  must(cudaStreamBeginCapture(captures, cudaStreamCaptureModeGlobal));
  const cuda::Armed refused = completions.arm(captures, 2);
  if (refused.code != cuda::ArmCode::capturing) wrong("a capturing stream was not refused");
  const std::uint64_t asked = completions.figures().asked;
  while (completions.figures().asked < asked + 3) std::this_thread::yield();
  std::atomic<bool> armed_elsewhere{false};
  std::thread([&] {
    must(cudaSetDevice(0));
    armed_elsewhere = static_cast<bool>(completions.arm(works, 3));
  }).join();
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(captures, &graph) != cudaSuccess) wrong("the capture was spoiled");
  if (!armed_elsewhere) wrong("another thread could not arm meanwhile");
  held.finish();
  const auto node = completions.add_host_node(graph, {}, 4);
  if (!node) wrong(node.error().message);
  cudaGraphExec_t exec = nullptr;
  must(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 100; ++i) must(cudaGraphLaunch(exec, captures));
  const cuda::Armed behind = completions.arm_after_launch(exec, captures, 5);
  if (!behind) wrong("not armed behind a launch");
  while (nodes != 101 || others != 3) std::this_thread::yield();
  if (completions.end(std::chrono::seconds(10)) != Detached::done) wrong("it did not end");
  std::printf("{\"nodes\": %d, \"others\": %d, \"refused\": \"%s\"}\n", nodes.load(), others.load(),
              std::string(to_string(refused.code)).c_str());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  must(cudaSetDevice(0));
  must(cudaFree(nullptr));
  if (what == "latency" && count == 4) return latency(words[2], std::atoi(words[3]));
  if (what == "many" && count == 3) return many(std::strtoull(words[2], nullptr, 10));
  if (what == "error") return error();
  if (what == "capture") return capture();
  std::fprintf(stderr,
               "usage: completions latency STRATEGY TIMES | many TICKETS | error | capture\n");
  return 2;
}
