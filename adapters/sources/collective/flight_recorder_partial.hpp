// Under which name is a dump's file written before it is whole, and who removes it when its process
// ends meanwhile? The next process of that user that writes into the folder.
#pragma once
#include <string_view>

#include "adapters/sources/collective/flight_recorder_file.hpp"

namespace ringmain::collective::detail {

/// A new file in that folder, with the rights that the process gives its files. Below 0: errno says
/// why. Allocates nothing.
[[nodiscard]] int make_partial(std::string_view folder, FlightPath& path) noexcept;
/// Those of processes of this user that are dead are removed: how many. Left alone is what another
/// machine, another boot of this one or another pid namespace left, as nobody here knows whether
/// its process lives. Allocates nothing.
int remove_dead_partials(FlightPath& folder) noexcept;

}  // namespace ringmain::collective::detail
