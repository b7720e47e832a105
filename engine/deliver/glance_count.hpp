// How many glances follow a whole look?
//
// So many that a whole look is a small part of the time. On their own here, as the search for
// interleavings has fewer, or most of its steps would be pauses.
#pragma once
#include <cstddef>

namespace ringmain::engine {

constexpr std::size_t kGlancesMost = 32;

}  // namespace ringmain::engine
