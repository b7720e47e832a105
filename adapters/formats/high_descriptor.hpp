// Which numbers may a descriptor of ringmain have in another program's process? High ones: the
// program may count on the low ones.
#pragma once
#include <fcntl.h>
#include <unistd.h>

namespace ringmain::formats {

/// Duplicates `fd` to a free number at or above three quarters of the limit (of 4096 at most),
/// closed at an exec; -1 where the limit is low.
inline int duplicate_high(int fd) noexcept {
  constexpr long kLowest = 24;
  constexpr long kHighest = 4096;
  const long most = ::sysconf(_SC_OPEN_MAX);
  const long base = (most < 0 || most > kHighest ? kHighest : most) * 3 / 4;
  return base < kLowest ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(base));
}

}  // namespace ringmain::formats
