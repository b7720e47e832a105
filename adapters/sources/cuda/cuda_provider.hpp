// CUDA by its name: `cuda`, or `cuda:WORD,WORD`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::cuda {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::cuda
