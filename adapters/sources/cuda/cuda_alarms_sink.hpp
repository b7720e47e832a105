// How is the sink `alarms` known to the registry?
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::cuda {

[[nodiscard]] registry::Provider alarms_provider();

}  // namespace ringmain::cuda
