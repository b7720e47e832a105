// How does the source of CUDA's events fare? It never fails in silence.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::cuda {

enum class SourceState : std::uint8_t {
  attached,     // from here on calls are heard
  unavailable,  // it could not attach: `reason`, and `owner` where another tool has CUPTI
  lent,         // it let go of CUPTI for another tool (`owner`), and hears nothing until `attached`
  lost,         // CUPTI has ended under it: `reason`
  detached      // it has left; the counts are final
};

/// `cuda.source`. The counts are of the time since the source attached first.
struct SourceNotice {
  std::uint64_t published = 0;   // events that were accepted
  std::uint64_t refused = 0;     // events that were not: full, no_memory, closed
  std::uint64_t suppressed = 0;  // calls from within subscribers' callbacks
  std::uint64_t unkept = 0;      // handles that found no room, and read generation 0
  std::int32_t result = 0;       // what CUPTI answered; 0: nothing was wrong with it
  std::uint32_t cupti = 0;       // its version, CUPTI_API_VERSION's form: 130001; 0: not known
  SourceState state = SourceState::attached;
  Name owner;  // of CUPTI's one place, as it calls itself
  Text<224> reason;
};

constexpr auto describe(EventOf<SourceNotice>) {
  using E = SourceNotice;
  return event("cuda.source", field<&E::state>("state", "attached,unavailable,lent,lost,detached"),
               field<&E::reason>("reason"), field<&E::owner>("owner"), field<&E::result>("result"),
               field<&E::cupti>("cupti"), field<&E::published>("published", Unit::count),
               field<&E::refused>("refused", Unit::count),
               field<&E::suppressed>("suppressed", Unit::count),
               field<&E::unkept>("unkept", Unit::count));
}

}  // namespace ringmain::cuda
