#include "adapters/sources/compile/dynamo/md5.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringmain::compile {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/// floor(2^32 |sin(i + 1)|), as the RFC defines its table.
std::array<std::uint32_t, 64> make_sines() {
  std::array<std::uint32_t, 64> sines{};
  for (std::size_t i = 0; i < sines.size(); ++i) {
    sines[i] = static_cast<std::uint32_t>(
        std::floor(4294967296.0 * std::fabs(std::sin(static_cast<double>(i + 1)))));
  }
  return sines;
}

using State = std::array<std::uint32_t, 4>;

void take_block(State& state, const unsigned char* block) {
  static const std::array<std::uint32_t, 64> sines = make_sines();
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, sizeof words);
  auto [a, b, c, d] = state;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::uint32_t word = i;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d);
        break;
      case 1:
        mixed = (b & d) | (c & ~d);
        word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d);
        word = 7 * i;
    }
    const std::uint32_t sum = a + mixed + sines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[i / 16][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

std::string md5_hex(std::string_view bytes) {
  State state{0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 64; left -= 64, at += 64) take_block(state, at);
  std::array<unsigned char, 128> rest{};
  if (left > 0) std::memcpy(rest.data(), at, left);
  rest[left] = 0x80;
  const std::size_t size = left < 56 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  std::memcpy(rest.data() + size - 8, &bits, sizeof bits);
  for (std::size_t i = 0; i < size; i += 64) take_block(state, rest.data() + i);
  std::string hex;
  for (const std::uint32_t word : state) {
    for (unsigned byte = 0; byte < 4; ++byte) {
      constexpr char kDigits[] = "0123456789abcdef";
      const std::uint32_t value = word >> (8 * byte) & 0xffu;
      hex += kDigits[value >> 4];
      hex += kDigits[value & 15];
    }
  }
  return hex;
}

}  // namespace ringmain::compile
