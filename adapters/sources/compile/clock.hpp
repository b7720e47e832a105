// The time that spans are measured in.
#pragma once
#include <chrono>
#include <cstdint>

namespace ringmain::compile {

inline std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace ringmain::compile
