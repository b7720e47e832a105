// Is this library in the process twice? Wheels bring their own copies, and two copies share
// nothing.
#pragma once
#include <string>
#include <vector>

namespace ringmain {

/// The files of all copies of libringmain that are loaded, one that calls itself ringmain by the C
/// ABI's symbol; this one first. A copy that is linked statically without exporting its symbols is
/// not seen. Threads: any. Takes the loader's lock; throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> loaded_copies();

namespace detail {
/// Names them on standard error if there are several. Each copy calls it when it is loaded.
void tell_of_copies() noexcept;
}  // namespace detail

}  // namespace ringmain
