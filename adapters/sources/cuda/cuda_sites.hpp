// What is published of a call, and at which of its edges?
//
// What makes or uses a handle is published at the exit, when its result is known, and takes as long
// as the call. What gives a handle back is published at the entry, before another thread can get
// the same value; if the call then fails, that is published at the exit. Synchronizations are
// published at both. A context's begin and end come from CUPTI itself where it tells of them.
#pragma once
#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/cuda_guard.hpp"
#include "adapters/sources/cuda/cupti_abi.hpp"

namespace ringmain::cuda {

/// The outermost call of a thread is entered, or about to return: publishes what there is to say.
/// Threads: the calling one, inside the callback.
void on_entry(Attachment& to, Guard& guard, const abi::CallData& data) noexcept;
void on_exit(Attachment& to, Guard& guard, CallUnderWay& call, const abi::CallData& data) noexcept;
/// A context is made, or about to go, by whatever call.
void on_context(Attachment& to, Guard& guard, std::uint32_t cbid,
                const abi::ResourceData& data) noexcept;

}  // namespace ringmain::cuda
