// NVTX by its name: `nvtx`, or `nvtx:step=RANGE`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::nvtx {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::nvtx
