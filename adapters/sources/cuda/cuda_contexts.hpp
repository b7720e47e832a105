// On which device is a context, and which number does CUPTI give it? Asked until CUPTI has said it
// once, and kept, as a callback may not ask for more.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "events/cuda.hpp"

#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

/// Contexts by CUPTI's number of them, which never comes twice. Where there are more than there is
/// room for, the rest is asked for anew each time. Threads: any. Progress: lock-free.
class Contexts {
 public:
  /// kNoDevice for no context, and where CUPTI does not say. `ask`: cuptiGetDeviceId.
  [[nodiscard]] std::int32_t device_of(std::uint32_t number, void* context,
                                       abi::GetDeviceIdFn* ask) noexcept {
    if (context == nullptr) return kNoDevice;
    Kept* const kept = number == 0 ? nullptr : find_or_take(number);
    if (kept == nullptr) return asked(context, ask);
    if (const std::int32_t known = kept->device; known != kNotAsked) return known;
    const std::int32_t device = asked(context, ask);
    if (kept->context != context) {
      for (Kept& other : all_) {  // a context of this address, whose end was not heard
        if (&other != kept && other.context == context) forget(other.number);
      }
      kept->context = context;
    }
    if (device != kNoDevice) kept->device = device;  // else it is asked for again
    return device;
  }
  /// 0: no call in that context was ever heard.
  [[nodiscard]] std::uint32_t number_of(const void* context) const noexcept {
    for (const Kept& kept : all_) {
      if (kept.context == context && kept.number != 0) return kept.number;
    }
    return 0;
  }
  /// The context is gone; another may have its address.
  void forget(std::uint32_t number) noexcept {
    for (Kept& kept : all_) {
      if (number == 0 || kept.number != number) continue;
      kept.context = nullptr;
      kept.device = kNotAsked;
      kept.number = 0;  // last: from here on it is free
    }
  }

 private:
  static constexpr std::int32_t kNotAsked = -2;
  static constexpr std::size_t kRoom = 256, kLooks = 16;
  struct Kept {
    std::atomic<std::uint32_t> number{0};  // 0: free
    std::atomic<std::int32_t> device{kNotAsked};
    std::atomic<const void*> context{nullptr};
  };

  static std::int32_t asked(void* context, abi::GetDeviceIdFn* ask) noexcept {
    std::uint32_t device = 0;
    if (ask == nullptr || ask(context, &device) != abi::kSuccess) return kNoDevice;
    return static_cast<std::int32_t>(device);
  }
  Kept* find_or_take(std::uint32_t number) noexcept {
    for (std::size_t i = 0; i < kLooks; ++i) {
      Kept& kept = all_[(number + i) % kRoom];
      std::uint32_t there = kept.number;
      if (there == number) return &kept;
      if (there != 0) continue;
      if (kept.number.compare_exchange_strong(there, number) || there == number) return &kept;
    }
    return nullptr;
  }

  std::array<Kept, kRoom> all_{};
};

}  // namespace ringmain::cuda
