// How do feeders wake the thread that drains a mailbox itself? The protocol is in deliver/pull.hpp.
#pragma once
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"

namespace ringmain::engine {

struct alignas(kLineBytes) Pull {
  Atomic<std::uint32_t> key{0};
  Atomic<std::uint32_t> told{0};
  Atomic<std::uint32_t> interrupted{0};  // 1: the next wait ends at once
  Atomic<int> fd{-1};  // an eventfd once it was asked for: then the reader never sleeps here
};

/// Feeder: wakes the reader, which is not looking, as an event is there.
void tell_reader(Pull& pull) noexcept;
/// Makes the descriptor readable. Keeps errno.
void make_readable(int fd) noexcept;
/// Ends the reader's wait, the one under way or the next. Threads: any. Progress: wait-free.
void interrupt_reader(Pull& pull) noexcept;

}  // namespace ringmain::engine
