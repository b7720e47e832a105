// Which handles does NCCL hold, and was one given for two events at once?
//
// A table of words that threads claim without a lock and without an order: a lock around the calls
// would hide races of the plugin's from ThreadSanitizer.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

namespace ringmain::nccl_conformance {

class LiveHandles {
 public:
  LiveHandles() : words_(kWords) {}

  [[nodiscard]] bool has(void* handle) const noexcept {
    const auto word = reinterpret_cast<std::uintptr_t>(handle);
    std::size_t place = first(word);
    for (std::size_t i = 0; i < kProbes; ++i, place = (place + 1) % kWords) {
      if (words_[place].load(std::memory_order_relaxed) == word) return true;
    }
    return false;
  }

  /// False if the handle is live already.
  bool add(void* handle) noexcept {
    const auto word = reinterpret_cast<std::uintptr_t>(handle);
    std::size_t place = first(word);
    for (std::size_t i = 0; i < kProbes; ++i, place = (place + 1) % kWords) {
      if (words_[place].load(std::memory_order_relaxed) == word) return false;
    }
    place = first(word);
    for (std::size_t i = 0; i < kProbes; ++i, place = (place + 1) % kWords) {
      std::uintptr_t none = 0;
      if (words_[place].compare_exchange_strong(none, word, std::memory_order_relaxed)) return true;
    }
    return true;  // the table is full around here: not watched
  }

  void remove(void* handle) noexcept {
    const auto word = reinterpret_cast<std::uintptr_t>(handle);
    std::size_t place = first(word);
    for (std::size_t i = 0; i < kProbes; ++i, place = (place + 1) % kWords) {
      std::uintptr_t expected = word;
      if (words_[place].compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return;
    }
  }

  void clear() noexcept {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kWords = std::size_t{1} << 17;
  static constexpr std::size_t kProbes = 32;

  static std::size_t first(std::uintptr_t word) noexcept {
    return static_cast<std::size_t>((word * 0x9E3779B97F4A7C15u) >> 47) % kWords;
  }

  std::vector<std::atomic<std::uintptr_t>> words_;
};

}  // namespace ringmain::nccl_conformance
