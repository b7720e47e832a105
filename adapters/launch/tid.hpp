// Which thread publishes? Linux's number of it, which debuggers and traces show.
#pragma once
#include <cstdint>
#include <unistd.h>

namespace ringmain::run {

/// A system call at a thread's first use. In a forked child it may still be the parent's number;
/// nothing is heard from such a child.
[[nodiscard, gnu::visibility("hidden")]] inline std::uint32_t this_tid() noexcept {
  static constinit thread_local std::uint32_t tid = 0;
  if (tid == 0) tid = static_cast<std::uint32_t>(::gettid());
  return tid;
}

}  // namespace ringmain::run
