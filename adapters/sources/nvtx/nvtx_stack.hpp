// In which pushed ranges is this thread?
//
// Ranges nest per domain, and a thread may be in several domains at once, so an end looks for the
// innermost range of its domain. Nothing here has a destructor that runs at the thread's end,
// because a program may pop in a destructor of its own.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "events/nvtx.hpp"

#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::nvtx {

struct Domain;

struct Pushed {
  const Domain* domain = nullptr;
  std::uint64_t id = 0;
  std::int64_t begin_ns = 0;
  std::uint32_t depth = 0;
  Message message;
  Part part;
};

class Stack {
 public:
  static constexpr std::size_t kDepthMax = 64;

  /// The depth of a range that is pushed now.
  [[nodiscard]] std::uint32_t depth_in(const Domain& domain) const noexcept {
    std::uint32_t depth = 0;
    for (std::size_t i = 0; i < size_; ++i) depth += ranges_[i].domain == &domain ? 1u : 0u;
    return depth;
  }
  /// Room for one more range; nullptr past kDepthMax, where ranges are only counted.
  Pushed* push() noexcept {
    if (size_ == kDepthMax) {
      ++beyond_;
      return nullptr;
    }
    return &ranges_[size_++];
  }
  /// Takes the domain's innermost range out. False if there is none, or none that was kept.
  bool pop(const Domain& domain, Pushed& out) noexcept {
    if (beyond_ > 0) {
      --beyond_;
      return false;
    }
    for (std::size_t i = size_; i-- > 0;) {
      if (ranges_[i].domain != &domain) continue;
      out = ranges_[i];
      for (--size_; i < size_; ++i) ranges_[i] = ranges_[i + 1];
      return true;
    }
    return false;
  }

 private:
  std::array<Pushed, kDepthMax> ranges_;
  std::size_t size_ = 0;
  std::size_t beyond_ = 0;
};

}  // namespace ringmain::nvtx
