// Which function makes a wrapped call, and which of them are asked about first? What is behind the
// gates of traced_call.hpp.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "adapters/sources/cuda/cuda_attachment.hpp"
#include "adapters/sources/cuda/traced_call.hpp"

namespace ringmain::cuda {

/// The kinds whose wrapped calls somebody needs. Written under the source's lock.
extern constinit std::atomic<Kinds> attended_kinds;

/// Wrapped calls of these kinds are asked about from now on, and others no more. Under the source's
/// lock.
void attend_to(Kinds kinds) noexcept;
/// Opens or closes one gate, as attended_kinds and its function have it. Under the source's lock.
void settle_gate(std::size_t place) noexcept;

/// The function of that row: what replaces it, else `linked`, else what is found. nullptr: there is
/// none. At a call's first time it looks for it, which blocks and may allocate.
detail::AnyFunction* function_of(std::size_t place, detail::AnyFunction* linked) noexcept;
/// What a call answers that has no function: is it the runtime that is not there, or older than it?
std::int32_t why_no_function() noexcept;
/// What cudaGetDevice() says; kNoDevice where it fails, or is not there.
std::int32_t current_device(detail::AnyFunction* linked) noexcept;

}  // namespace ringmain::cuda
