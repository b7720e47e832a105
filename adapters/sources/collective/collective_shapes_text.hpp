// How are an operation's tensors written? As types and sizes: "float32[512,96] int64[]".
#pragma once
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bus/text.hpp"

#include "adapters/sources/collective/collective_arguments.hpp"

namespace ringmain::collective {

/// Writes as many as fit whole, and returns how many did not.
template <std::size_t N>
std::uint32_t write_shapes(Text<N>& text, Tensors tensors) noexcept {
  std::array<char, Text<N>::kBytesMax> all{};
  std::size_t used = 0;
  std::uint32_t written = 0;
  for (const Tensor& tensor : tensors) {
    std::size_t at = used;
    bool fits = true;
    const auto put = [&](std::string_view words) {
      fits = fits && words.size() <= all.size() - at;
      for (std::size_t i = 0; fits && i < words.size(); ++i) all[at++] = words[i];
    };
    if (written != 0) put(" ");
    put(tensor.dtype.view());
    put("[");
    for (std::size_t i = 0; i < tensor.sizes.size() && fits; ++i) {
      std::array<char, 20> digits{};
      const auto end =
          std::to_chars(digits.data(), digits.data() + digits.size(), tensor.sizes[i]).ptr;
      if (i != 0) put(",");
      put({digits.data(), static_cast<std::size_t>(end - digits.data())});
    }
    put("]");
    if (!fits) break;
    used = at;
    ++written;
  }
  text = std::string_view(all.data(), used);
  return static_cast<std::uint32_t>(tensors.size()) - written;
}

}  // namespace ringmain::collective
