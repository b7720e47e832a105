// How does the registry make a source of NCCL's events without being linked with what makes it?
#pragma once
#include "adapters/provider.hpp"

/// In libringmain_nccl: writes a SourceFactory to `made`.
extern "C" void ringmain_nccl_factory(ringmain::registry::Factory* made);

namespace ringmain::nccl {

constexpr const char* kFactory = "ringmain_nccl_factory";

}  // namespace ringmain::nccl
