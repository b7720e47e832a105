// How does a source get into a process whose library of it lies beside ringmain's others, and which
// programs that do not ask for it never load?
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::registry {

/// What `function` of the library `file` makes: a void(Factory*) for callers of C. The library
/// stays loaded. not_found: it is not there, or is another one's. Threads: any.
[[nodiscard]] Result<Factory> load_own(const char* source, const char* file, const char* function);

}  // namespace ringmain::registry
