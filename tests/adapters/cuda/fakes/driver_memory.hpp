// Memory of the fake driver's: given out, and taken back.
#pragma once
#include "tests/adapters/cuda/fakes/driver_world.hpp"

namespace ringmain::fake {

/// Gives out memory and says so in `deed`; more than the device has is refused with 2.
CUresult allocate(MemoryClass kind, std::uint64_t bytes, CUdeviceptr* pointer, Deed& deed);
/// Takes it back. An address that is not its first byte, or of another kind, is refused with 1.
CUresult release(MemoryClass kind, CUdeviceptr pointer, Deed& deed);

}  // namespace ringmain::fake
