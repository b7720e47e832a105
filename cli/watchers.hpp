// Was there built what a source needs to hear anything? A source may name a library for each kind
// of what it watches, which is built where that kind is installed.
#pragma once
#include <string>

#include "adapters/provider.hpp"

namespace ringmain::cli {

[[nodiscard]] bool is_built(const registry::Watcher& watcher);
/// "" where one is there at least, or none is needed; else a sentence that says how to mend it.
[[nodiscard]] std::string no_watcher(const registry::RunNeeds& needs);

}  // namespace ringmain::cli
