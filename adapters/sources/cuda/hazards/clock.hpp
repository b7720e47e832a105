// How much of each stream's work comes before something? A vector clock: for each stream's place,
// how many of its uses.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmain::cuda::hazards {

class Clock {
 public:
  [[nodiscard]] std::uint64_t at(std::size_t place) const noexcept {
    return place < uses_.size() ? uses_[place] : 0;
  }
  void raise(std::size_t place, std::uint64_t uses) {
    if (place >= uses_.size()) uses_.resize(place + 1);
    uses_[place] = std::max(uses_[place], uses);
  }
  void join(const Clock& other) {
    if (other.uses_.size() > uses_.size()) uses_.resize(other.uses_.size());
    for (std::size_t i = 0; i < other.uses_.size(); ++i)
      uses_[i] = std::max(uses_[i], other.uses_[i]);
  }
  [[nodiscard]] bool holds(const Clock& other) const noexcept {
    for (std::size_t i = 0; i < other.uses_.size(); ++i) {
      if (at(i) < other.uses_[i]) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> uses_;
};

}  // namespace ringmain::cuda::hazards
