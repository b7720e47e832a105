// The heartbeat by its name: `heartbeat`, or `heartbeat:100` for one every 100 ms.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::heartbeat {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::heartbeat
