// NCCL's calls by name: `--source nccl_calls`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::nccl {
[[nodiscard]] registry::Provider calls_provider();
}  // namespace ringmain::nccl
