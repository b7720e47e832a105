// How does a training loop keep a budget of device memory, and its GPU busy? An allocation beyond
// the budget is refused before CUDA is called, and the loop goes on with a smaller batch. The GPU
// itself says which steps are done, and a step that waits for it all the same raises an alarm.
//
// It is built without CUDA's toolkit; a program that has it includes <cuda_runtime_api.h> first,
// and needs no other change.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ringmain/adapters/sources/cuda/completions.hpp>
#include <ringmain/adapters/sources/cuda/cuda_alarms.hpp>
#include <ringmain/adapters/sources/cuda/cuda_source.hpp>
#include <ringmain/adapters/sources/cuda/traced.hpp>
#include <ringmain/bus/bus.hpp>
#include <ringmain/events/steps/source.hpp>

namespace {

namespace cuda = ringmain::cuda;
namespace traced = ringmain::cuda::traced;
using ringmain::Bus;
using ringmain::Verdict;

constexpr std::uint64_t kMiB = 1 << 20;

/// Knows what the program holds, and refuses what would be too much. It is asked in the thread that
/// allocates, of which this program has one: with several, `held_` would have to be atomic, and
/// what is on its way counted as held.
class Budget {
 public:
  Budget(Bus& bus, std::uint64_t bytes) : most_(bytes) {
    asked_ = bus.channel<cuda::CallBegin>().subscribe_inline([this](const cuda::CallBegin& call) {
      const bool fits = call.bytes <= most_ - held_;
      if (call.kind != cuda::CallKind::memory_allocation || fits) return Verdict::allow();
      return Verdict::veto(over_);
    });
    more_ = bus.channel<cuda::MemoryAllocation>().subscribe_inline([this](const auto& call) {
      if (call.phase != cuda::Phase::failed) held_ += call.bytes;
    });
    less_ = bus.channel<cuda::MemoryDeallocation>().subscribe_inline([this](const auto& call) {
      // It is told before CUDA takes the memory, and once more where it was not taken.
      if (call.phase != cuda::Phase::failed)
        held_ -= call.bytes;
      else if (call.result != traced::cudaErrorNotPermitted)
        held_ += call.bytes;
    });
  }
  [[nodiscard]] unsigned held_mib() const { return static_cast<unsigned>(held_ / kMiB); }

 private:
  const ringmain::Name over_{"over budget"};  // made beforehand: a new Name takes a lock
  const std::uint64_t most_;
  std::uint64_t held_ = 0;
  ringmain::Subscription asked_, more_, less_;
};

/// The memory and the work of one step.
class Step {
 public:
  explicit Step(traced::cudaStream_t stream) : stream_(stream) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    for (void* memory : {activations_, gradients_}) {
      if (memory != nullptr) (void)traced::cudaFreeAsync(memory, stream_);
    }
  }
  /// What CUDA answers, or the budget in its place.
  traced::cudaError_t take(unsigned batch) {
    const std::size_t bytes = batch * kMiB / 8;
    const auto got = traced::cudaMallocAsync(&activations_, bytes, stream_);
    if (got != traced::cudaSuccess) return got;
    return traced::cudaMallocAsync(&gradients_, bytes / 2, stream_);
  }
  /// Behind its work the GPU says that it got there.
  [[nodiscard]] bool run(cuda::Completions& completions, std::uint64_t number) {
    // … its kernels are launched here …
    return static_cast<bool>(completions.arm(stream_, number));
  }

 private:
  traced::cudaStream_t stream_;
  void* activations_ = nullptr;
  void* gradients_ = nullptr;
};

/// What the loop works with.
struct Trainer {
  ringmain::step::Source steps;
  traced::cudaStream_t stream;
  cuda::Completions completions;
  const Budget& budget;

  /// With the largest batch that fits. 0: CUDA failed.
  unsigned train(std::uint64_t number, unsigned batch) {
    const auto scope = steps.step(number);
    for (; batch != 0; batch /= 2) {
      Step step(stream);
      const auto got = step.take(batch);
      if (got == traced::cudaErrorMemoryAllocation) continue;  // refused: CUDA was not asked
      if (got != traced::cudaSuccess || !step.run(completions, number)) return 0;
      if (number == 4) (void)traced::cudaStreamSynchronize(stream);  // to read the loss
      std::printf("step %d: batch %u, %u MiB held\n", static_cast<int>(number), batch,
                  budget.held_mib());
      return batch;
    }
    return 0;
  }
};

/// CUPTI's word on all calls, or, where it cannot be had, that of the calls of traced.hpp alone.
ringmain::Result<cuda::Source> attach(Bus& bus) {
  auto source = cuda::Source::attach(bus);
  if (source) return source;
  std::printf("only wrapped calls are heard: %s\n", source.error().message.c_str());
  return cuda::Source::attach(bus, {.wrapped_only = true});
}

}  // namespace

int main() {
  Bus bus;
  const Budget budget(bus, 32 * kMiB);
  auto refusals = bus.channel<cuda::CallRefused>().subscribe_inline([](const auto& call) {
    const std::string_view api = call.api.view(), why = call.reason.view();
    std::printf("refused: %.*s of %llu bytes, %.*s\n", static_cast<int>(api.size()), api.data(),
                static_cast<unsigned long long>(call.bytes), static_cast<int>(why.size()),
                why.data());
  });
  std::vector<std::string> alarmed;
  cuda::Alarms alarms(bus, {}, [&alarmed](const cuda::Alarm& alarm) {
    alarmed.push_back(cuda::sentence_of(alarm));
  });
  std::atomic<int> done{0};
  auto reached = bus.channel<cuda::Completion>().subscribe([&done](const cuda::Completion& said) {
    if (said.outcome == cuda::Outcome::completed) ++done;
  });
  auto source = attach(bus);
  if (!source) return 1;

  void* weights = nullptr;
  traced::cudaStream_t stream = nullptr;
  if (traced::cudaMalloc(&weights, 8 * kMiB) != traced::cudaSuccess ||
      traced::cudaStreamCreate(&stream) != traced::cudaSuccess) {
    std::printf("there is no CUDA here\n");
    return 1;
  }
  auto completions = cuda::Completions::make(bus);  // of the context that cudaMalloc() has made
  if (!completions) {
    std::printf("%s\n", completions.error().message.c_str());
    return 1;
  }
  Trainer trainer{ringmain::step::Source::attach(bus).value(), stream,
                  std::move(completions).value(), budget};
  unsigned batch = 32;
  for (std::uint64_t number = 1; number <= 4 && batch != 0; ++number)
    batch = trainer.train(number, batch * 2);  // as large as it may be
  (void)trainer.completions.end(std::chrono::seconds(10));
  (void)traced::cudaStreamDestroy(stream);
  (void)traced::cudaFree(weights);
  source.value().detach();
  (void)alarms.finish();
  (void)bus.flush(std::chrono::seconds(10));
  std::printf("%d steps are done\n", done.load());
  for (const std::string& one : alarmed) std::printf("alarm: %s\n", one.c_str());
  std::printf("%u MiB held at the end\n", budget.held_mib());
  return batch == 0 || budget.held_mib() != 0 || done != 4 ? 1 : 0;
}
