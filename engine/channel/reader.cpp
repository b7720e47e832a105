#include "engine/channel/reader.hpp"

#include <cerrno>
#include <climits>
#include <unistd.h>

namespace ringmain::engine {

void make_readable(int fd) noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);  // full means readable already
  errno = saved;
}

void tell_reader(Pull& pull) noexcept {
  if (pull.told.exchange(1, std::memory_order_seq_cst) != 0) return;  // m.told
  pull.key.fetch_add(1, std::memory_order_release);                   // m.told
  futex_wake(pull.key, INT_MAX);
  const int fd = pull.fd.load(std::memory_order_acquire);  // m.told
  if (fd >= 0) make_readable(fd);
}

void interrupt_reader(Pull& pull) noexcept {
  pull.interrupted.store(1, std::memory_order_release);  // m.interrupted
  pull.key.fetch_add(1, std::memory_order_release);      // m.told
  futex_wake(pull.key, INT_MAX);
}

}  // namespace ringmain::engine
