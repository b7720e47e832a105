// Which files can the program's threads not see? Those of a thread that has a table of descriptors
// of its own: the program closes none of them, takes none of their numbers and inherits none.
#pragma once

namespace ringmain::engine {

/// Gives this thread, and those that it starts, a table of its own, without what the program has
/// open from `first` on. False: the system refuses, and nothing has changed.
[[nodiscard]] bool take_own_descriptors(unsigned first) noexcept;

}  // namespace ringmain::engine
