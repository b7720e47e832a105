// Words by which publishing threads show their calls, as a channel's lanes have them, without one.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>

#include "engine/subscribe/shown.hpp"

namespace ringmain::tests {

template <std::size_t N>
class ShownWords final : public engine::ShownCalls {
 public:
  [[nodiscard]] bool calling(const engine::Subscriber& subscriber) const noexcept override {
    for (const engine::Shown& word : words_) {
      if (word.load(std::memory_order_acquire) == &subscriber) return true;
    }
    return false;
  }
  void keep() const noexcept override { kept_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() const noexcept override { kept_.fetch_sub(1, std::memory_order_relaxed); }
  /// How often is it kept?
  [[nodiscard]] int kept() const noexcept { return kept_.load(std::memory_order_relaxed); }
  [[nodiscard]] engine::Shown& at(std::size_t i) noexcept { return words_.at(i); }

 private:
  std::array<engine::Shown, N> words_{};
  mutable std::atomic<int> kept_{0};
};

}  // namespace ringmain::tests
