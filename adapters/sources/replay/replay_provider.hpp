// A replay by its name: `replay:trace.json.gz`, at recorded speed, on whatever bus it is opened
// with.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::replay {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::replay
