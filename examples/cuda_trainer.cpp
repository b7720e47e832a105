// How does a training loop keep a budget of device memory? An allocation beyond it is refused
// before CUDA is called, and the loop goes on with a smaller batch.
//
// It is built without CUDA's toolkit; a program that has it includes <cuda_runtime_api.h> first,
// and needs no other change.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#include <ringmain/adapters/sources/cuda/cuda_source.hpp>
#include <ringmain/adapters/sources/cuda/traced.hpp>
#include <ringmain/bus/bus.hpp>

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
  traced::cudaError_t run(traced::cudaEvent_t done) {
    const auto recorded = traced::cudaEventRecord(done, stream_);
    return recorded != traced::cudaSuccess ? recorded : traced::cudaEventSynchronize(done);
  }

 private:
  traced::cudaStream_t stream_;
  void* activations_ = nullptr;
  void* gradients_ = nullptr;
};

/// With the largest batch that fits. 0: CUDA failed.
unsigned train(int number, unsigned batch, traced::cudaStream_t stream, traced::cudaEvent_t done,
               const Budget& budget) {
  for (; batch != 0; batch /= 2) {
    Step step(stream);
    const auto got = step.take(batch);
    if (got == traced::cudaErrorMemoryAllocation) continue;  // refused: CUDA was not asked
    if (got != traced::cudaSuccess || step.run(done) != traced::cudaSuccess) return 0;
    std::printf("step %d: batch %u, %u MiB held\n", number, batch, budget.held_mib());
    return batch;
  }
  return 0;
}

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
  auto source = attach(bus);
  if (!source) return 1;

  void* weights = nullptr;
  traced::cudaStream_t stream = nullptr;
  traced::cudaEvent_t done = nullptr;
  if (traced::cudaMalloc(&weights, 8 * kMiB) != traced::cudaSuccess) return 1;
  if (traced::cudaStreamCreate(&stream) != traced::cudaSuccess) return 1;
  if (traced::cudaEventCreate(&done) != traced::cudaSuccess) return 1;
  unsigned batch = 32;
  for (int number = 1; number <= 4 && batch != 0; ++number)
    batch = train(number, batch * 2, stream, done, budget);  // as large as it may be
  (void)traced::cudaEventDestroy(done);
  (void)traced::cudaStreamDestroy(stream);
  (void)traced::cudaFree(weights);
  source.value().detach();
  std::printf("%u MiB held at the end\n", budget.held_mib());
  return batch == 0 || budget.held_mib() != 0 ? 1 : 0;
}
