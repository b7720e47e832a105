// What does the preload pass on? Every call that somebody may be told of; what only asks goes to
// NCCL as without it.
#pragma once
#include "adapters/sources/nccl/nccl_functions.hpp"

namespace ringmain::nccl {

/// Where calls go, by the table's places.
using Targets = Functions;

}  // namespace ringmain::nccl

extern "C" {
/// Of libringmain_nccl_calls.so. `targets` come as the program would call them, and leave as it
/// shall. 0: this run has not asked for NCCL's calls, and they stay as they are.
__attribute__((visibility("default"))) int ringmain_nccl_attach(
    ringmain::nccl::Targets* targets) noexcept;
}
