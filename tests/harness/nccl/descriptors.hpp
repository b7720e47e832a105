// What does a plugin of an older ABI get of a descriptor of the newest? NCCL's conversions: which
// members they carry over, what they leave unset, and which events and states they keep back.
#pragma once
#include <cstring>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl_conformance {

namespace abi = ringmain::nccl::abi;

/// How an event that a version does not know ends in the conversion.
enum class Conversion { passed_on, handle_cleared, handle_untouched };

/// Fills `to` from `from`. What NCCL does not set keeps the garbage that is there.
Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV4& to);
Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV5& to);
Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV6& to);

/// Is the state passed on to a plugin of this version?
bool passes(int version, int state) noexcept;
/// The mask after init.
int converted_mask(int version, int mask) noexcept;

}  // namespace ringmain::nccl_conformance
