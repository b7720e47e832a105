// Which numbers may a descriptor of ours have among the program's? High ones: the program counts on
// the low ones.
#pragma once
#include <fcntl.h>
#include <unistd.h>

namespace ringmain::formats {

/// The same file at a number from three quarters of the limit on (of 4096 at most), closed at an
/// exec; -1 where there are few numbers.
inline int duplicate_high(int fd) noexcept {
  constexpr long kLowest = 24;
  constexpr long kHighest = 4096;
  const long most = ::sysconf(_SC_OPEN_MAX);
  const long base = (most < 0 || most > kHighest ? kHighest : most) * 3 / 4;
  return base < kLowest ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(base));
}

}  // namespace ringmain::formats
