// Is there what a source needs to hear anything? A source may name a library for each kind of what
// it watches, which is built where that kind is installed.
#pragma once
#include <string>
#include <vector>

#include "adapters/provider.hpp"
#include "adapters/registry.hpp"

namespace ringmain::cli {

[[nodiscard]] bool is_built(const registry::Watcher& watcher);
/// "" where one is there at least, or none is needed; else a sentence that says how to mend it.
[[nodiscard]] std::string no_watcher(const registry::RunNeeds& needs);

/// "" where the source may find on this machine what it watches; else a sentence likewise. The
/// loader is asked as it will be in the command, whose environment is this one; a command that says
/// itself where its libraries are (RPATH) may find what is not found here.
[[nodiscard]] std::string nothing_to_watch(const registry::ProviderInfo& source);

/// What the command's own process says at its end, with --summary, if nobody let these sources in:
/// of itself, or where it has started others. Both empty: nothing.
struct Unused {
  std::string sentence, by_launcher;
};
[[nodiscard]] Unused if_never_used(const std::vector<registry::ProviderInfo>& sources);

}  // namespace ringmain::cli
