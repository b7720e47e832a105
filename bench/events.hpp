// The events of the benchmarks: 8 to 1,024 bytes, every word written, built where they are queued.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ringmain::bench {

/// 32 bytes unless the size is the question.
template <std::size_t kBytes>
struct Sized {
  static_assert(kBytes >= 32 && kBytes % 8 == 0);
  std::uint64_t number;
  std::int64_t sent;  // ticks
  std::array<std::uint64_t, kBytes / 8 - 2> more;
};
template <>
struct Sized<8> {
  std::uint64_t number;
};
using Payload = Sized<32>;

template <class E>
E make_event(std::uint64_t number, std::int64_t sent) noexcept {
  if constexpr (sizeof(E) == 8) {
    return {number};
  } else {
    E event;
    event.number = number;
    event.sent = sent;
    for (auto& word : event.more) word = number;
    return event;
  }
}

/// A callback that hears this number waits until it is told to go on: that makes a backlog.
constexpr std::uint64_t kHold = ~std::uint64_t{0};

}  // namespace ringmain::bench
