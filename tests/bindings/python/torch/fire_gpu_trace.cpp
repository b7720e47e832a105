// How does PyTorch's C++ side say the ten kinds, on a machine without a GPU? By its own dispatch:
// the calls below are those of its allocator and streams.
#include <c10/core/DeviceType.h>
#include <c10/core/impl/GPUTrace.h>
#include <cstdint>
#include <thread>

namespace {
void fire_all(std::uintptr_t event, std::uintptr_t stream, std::uintptr_t address) {
  const auto* trace = c10::impl::GPUTrace::get_trace();
  if (trace == nullptr) return;
  constexpr auto kCuda = c10::DeviceType::CUDA;
  (*trace)->trace_gpu_stream_creation(kCuda, stream);
  (*trace)->trace_gpu_event_creation(kCuda, event);
  (*trace)->trace_gpu_event_record(kCuda, event, stream);
  (*trace)->trace_gpu_event_wait(kCuda, event, stream);
  (*trace)->trace_gpu_memory_allocation(kCuda, address);
  (*trace)->trace_gpu_stream_synchronization(kCuda, stream);
  (*trace)->trace_gpu_event_synchronization(kCuda, event);
  (*trace)->trace_gpu_device_synchronization(kCuda);
  (*trace)->trace_gpu_memory_deallocation(kCuda, address);
  (*trace)->trace_gpu_event_deletion(kCuda, event);
}
}  // namespace

extern "C" {
/// One kind, once.
__attribute__((visibility("default"))) void fire_record(std::uintptr_t event,
                                                        std::uintptr_t stream) {
  if (const auto* trace = c10::impl::GPUTrace::get_trace())
    (*trace)->trace_gpu_event_record(c10::DeviceType::CUDA, event, stream);
}
__attribute__((visibility("default"))) void fire_block(std::uintptr_t address) {
  if (const auto* trace = c10::impl::GPUTrace::get_trace())
    (*trace)->trace_gpu_memory_allocation(c10::DeviceType::CUDA, address);
}
/// Says each of the ten kinds `times` times, in this thread.
__attribute__((visibility("default"))) void fire(int times, std::uintptr_t event,
                                                 std::uintptr_t stream, std::uintptr_t address) {
  for (int n = 0; n < times; ++n) fire_all(event, stream, address);
}
/// The same in a thread that Python does not know.
__attribute__((visibility("default"))) void fire_elsewhere(int times, std::uintptr_t event,
                                                           std::uintptr_t stream,
                                                           std::uintptr_t address) {
  std::thread(fire, times, event, stream, address).join();
}
}
