// Which providers does the command line know? Those of the process, and those of replay.
#pragma once
#include "adapters/registry.hpp"
#include "adapters/sources/replay/replay_provider.hpp"

namespace ringmain::cli {

[[nodiscard]] registry::Registry& known_providers();

}  // namespace ringmain::cli
