// How is a text put together that must not need memory of the heap?
#pragma once
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringmain::flight {

/// Up to N bytes of text. What comes after that is left out, which cut() says.
template <std::size_t N>
class FixedText {
 public:
  FixedText() noexcept {}  // its room is not touched before it is used

  FixedText& operator+=(std::string_view some) noexcept {
    cut_ = cut_ || some.size() > N - size_;
    some = some.substr(0, N - size_);
    some.copy(bytes_.data() + size_, some.size());
    size_ += some.size();
    return *this;
  }
  FixedText& operator+=(std::int64_t number) noexcept { return add_digits(number); }
  FixedText& operator+=(std::uint64_t number) noexcept { return add_digits(number); }

  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] const char* c_str() noexcept {
    bytes_[size_] = '\0';
    return bytes_.data();
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool cut() const noexcept { return cut_; }
  void clear() noexcept {
    size_ = 0;
    cut_ = false;
  }

 private:
  template <class T>
  FixedText& add_digits(T number) noexcept {
    std::array<char, 24> digits;
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this += std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }

  std::size_t size_ = 0;
  bool cut_ = false;
  std::array<char, N + 1> bytes_;
};

}  // namespace ringmain::flight
