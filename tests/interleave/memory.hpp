// Where does the memory of a schedule come from? From one arena, front to back, forgotten as a
// whole: a failed schedule needs no unwinding, and what was freed stays recognisable.
#pragma once
#include <cstddef>

namespace ringmain::interleave {

void forget_memory() noexcept;
/// Is this the arena's, and free at the moment?
[[nodiscard]] bool is_freed(const void* at) noexcept;
[[nodiscard]] std::size_t live_memory() noexcept;

}  // namespace ringmain::interleave
