// NCCL by its name: `nccl`, or `nccl:WORD,WORD`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::nccl {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::nccl
