// On which device is a context, and which number does CUPTI give it? Asked until CUPTI has said it
// once, and kept, as a callback may not ask for more.
//
// One word says whose a place is, and its device. Who takes a place alone writes its address, and
// fills in the device last; a filled word only becomes 0, or learns a device that was not said
// before. Numbers never come twice, so whoever reads the same number before and after an address
// has read what belongs together.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "events/cuda.hpp"

#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

/// Contexts by CUPTI's number of them, which never comes twice. Where there are more than there is
/// room for, the rest is asked for anew each time. Threads: any. Progress: wait-free.
class Contexts {
 public:
  /// kNoDevice for no context, and where CUPTI does not say. `ask`: cuptiGetDeviceId.
  [[nodiscard]] std::int32_t device_of(std::uint32_t number, void* context,
                                       abi::GetDeviceIdFn* ask) noexcept {
    if (context == nullptr) return kNoDevice;
    if (number == 0) return asked(context, ask);
    if (Kept* const kept = find(number)) {
      std::uint64_t unsaid = filled(number, kNoDevice);
      const std::uint64_t word = kept->word;
      if (is_filled(word) && number_in(word) == number && word != unsaid) return device_in(word);
      const std::int32_t device = asked(context, ask);
      (void)kept->word.compare_exchange_strong(unsaid, filled(number, device));
      return device;
    }
    Kept* const mine = take(number);
    if (mine == nullptr) return asked(context, ask);
    forget_at(context);  // a context of this address, whose end was not heard
    mine->context = context;
    const std::int32_t device = asked(context, ask);
    mine->word = filled(number, device);
    return device;
  }
  /// 0: no call in that context was ever heard.
  [[nodiscard]] std::uint32_t number_of(const void* context) const noexcept {
    for (const Kept& kept : all_) {
      if (const std::uint64_t word = word_at(kept, context)) return number_in(word);
    }
    return 0;
  }
  /// The context is gone; another may have its address. If it is just being asked for, which CUDA's
  /// rules do not allow, its place stays until the address comes again.
  void forget(std::uint32_t number) noexcept {
    for (Kept& kept : all_) {
      std::uint64_t word = kept.word;
      while (is_filled(word) && number_in(word) == number) {
        if (kept.word.compare_exchange_strong(word, 0)) break;
      }
    }
  }

 private:
  static constexpr std::size_t kRoom = 256, kLooks = 16;
  static constexpr std::uint32_t kBeingFilled = 0xffff'fffe;  // no device, and not kNoDevice
  struct Kept {
    std::atomic<std::uint64_t> word{0};  // 0: free, else the number, and the device below it
    std::atomic<const void*> context{nullptr};
  };

  static constexpr std::uint64_t word_of(std::uint32_t number, std::uint32_t low) noexcept {
    return std::uint64_t{number} << 32 | low;
  }
  static constexpr std::uint64_t filled(std::uint32_t number, std::int32_t device) noexcept {
    return word_of(number, static_cast<std::uint32_t>(device));
  }
  static constexpr bool is_filled(std::uint64_t word) noexcept {
    return word != 0 && static_cast<std::uint32_t>(word) != kBeingFilled;
  }
  static constexpr std::uint32_t number_in(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 32);
  }
  static constexpr std::int32_t device_in(std::uint64_t word) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(word));
  }

  /// The place of that number, which may be given away at any moment.
  Kept* find(std::uint32_t number) noexcept {
    for (std::size_t i = 0; i < kLooks; ++i) {
      Kept& kept = all_[(number + i) % kRoom];
      if (number_in(kept.word) == number) return &kept;
    }
    return nullptr;
  }
  Kept* take(std::uint32_t number) noexcept {
    for (std::size_t i = 0; i < kLooks; ++i) {
      Kept& kept = all_[(number + i) % kRoom];
      std::uint64_t none = 0;
      if (kept.word == 0 && kept.word.compare_exchange_strong(none, word_of(number, kBeingFilled)))
        return &kept;
    }
    return nullptr;
  }
  /// The place's word, if it is filled and of that address; else 0.
  static std::uint64_t word_at(const Kept& kept, const void* context) noexcept {
    const std::uint64_t word = kept.word;
    if (!is_filled(word) || kept.context != context) return 0;
    return number_in(kept.word) == number_in(word) ? word : 0;
  }
  void forget_at(const void* context) noexcept {
    for (Kept& kept : all_) {
      if (const std::uint64_t word = word_at(kept, context)) forget(number_in(word));
    }
  }
  static std::int32_t asked(void* context, abi::GetDeviceIdFn* ask) noexcept {
    std::uint32_t said = 0;
    if (ask == nullptr || ask(context, &said) != abi::kSuccess) return kNoDevice;
    const auto device = static_cast<std::int32_t>(said);
    return device < 0 ? kNoDevice : device;
  }

  std::array<Kept, kRoom> all_{};
};

}  // namespace ringmain::cuda
