// How does the registry make a source of CUDA's events without being linked with what makes it?
#pragma once
#include "adapters/provider.hpp"

/// In libringmain_cuda: writes a SourceFactory to `made`.
extern "C" void ringmain_cuda_factory(ringmain::registry::Factory* made);

namespace ringmain::cuda {

constexpr const char* kFactory = "ringmain_cuda_factory";

}  // namespace ringmain::cuda
