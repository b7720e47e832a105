// In the place of the engine's: so few that most steps are none of theirs.
#pragma once
#include <cstddef>

namespace ringmain::engine {

constexpr std::size_t kGlancesMost = 2;

}  // namespace ringmain::engine
