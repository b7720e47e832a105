// The figures of a bus as JSON: every field of stats.hpp by its own name.
#pragma once

#include "../json_text.hpp"
#include "../stats.hpp"

namespace ringmain::detail {

/// Adds the members of an object. Throws std::bad_alloc.
void add_stats(formats::JsonText& json, const Stats& stats);

}  // namespace ringmain::detail
