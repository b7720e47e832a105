// How does a test make the k-th allocation of its process fail?
//
// The program's own malloc, aligned_alloc, … and mmap come before the C library's, so that every
// allocation of every library in it is counted, in all threads or in one. A sanitizer has an
// allocator of its own: there only operator new and aligned_alloc fail, and the leak check is its
// business.
#pragma once
#include <cstddef>

namespace ringmain::tests {

/// From now on the `first`-th allocation fails, and those after it until `width` have.
void fail_allocations(long first, long width) noexcept;
/// The same of the calling thread's: a subscriber that takes notes meanwhile keeps its memory.
void fail_own_allocations(long first, long width) noexcept;
/// None fails any more. True: one did.
bool heal_allocations() noexcept;
/// Blocks that are allocated and not freed; 0 where a sanitizer counts.
long allocations_living() noexcept;

}  // namespace ringmain::tests
