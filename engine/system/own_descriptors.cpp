#include "engine/system/own_descriptors.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringmain::engine {

bool take_own_descriptors(unsigned first) noexcept {
  constexpr unsigned kUnshare = 2;  // CLOSE_RANGE_UNSHARE
  if (::syscall(SYS_close_range, first, ~0u, kUnshare) == 0) return true;
  if (::unshare(CLONE_FILES) != 0) return false;
  const long end = ::sysconf(_SC_OPEN_MAX);
  for (int fd = static_cast<int>(first); fd < end && fd < 65536; ++fd) (void)::close(fd);
  return true;
}

}  // namespace ringmain::engine
