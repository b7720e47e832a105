// PyTorch's wait counters by their name: `torch_waits`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::compile {

[[nodiscard]] registry::Provider waits_provider();

}  // namespace ringmain::compile
