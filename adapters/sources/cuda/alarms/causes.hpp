// Was this alarm said before? Of each cause the first is said, the others are counted, and the last
// of them is kept, to be said with the count at the end.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "events/cuda_alarm.hpp"

namespace ringmain::cuda::alarms {

/// What makes two alarms one cause; the first is the kind.
using Cause = std::array<std::uint64_t, 6>;

class Causes {
 public:
  explicit Causes(std::size_t most) : most_(most) {}

  enum class Met : std::uint8_t { first, again, no_room };
  Met meet(const Cause& cause, const Alarm& alarm) {
    if (const auto known = met_.find(cause); known != met_.end()) {
      const std::uint64_t count = known->second.count + 1;
      known->second = alarm;
      known->second.count = count;
      return Met::again;
    }
    if (met_.size() >= most_) return Met::no_room;
    met_.emplace(cause, alarm);
    return Met::first;
  }
  template <class F>
  void for_each_again(F say) const {
    for (const auto& [cause, last] : met_) {
      if (last.count > 1) say(last);
    }
  }

 private:
  const std::size_t most_;
  std::map<Cause, Alarm> met_;
};

}  // namespace ringmain::cuda::alarms
