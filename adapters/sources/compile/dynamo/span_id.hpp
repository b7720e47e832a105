// What joins the begin of a compile with its end? A number that no other compile of the process
// has, whichever source publishes it.
#pragma once
#include <cstdint>

namespace ringmain::compile {

/// 1, 2, 3 … Threads: any. Progress: wait-free.
[[nodiscard]] std::uint64_t new_span() noexcept;

/// Linux's id of the calling thread; a system call at a thread's first.
[[nodiscard]] std::uint32_t this_thread() noexcept;

}  // namespace ringmain::compile
