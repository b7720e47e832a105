#include "adapters/launch/await_change.hpp"

#include <cerrno>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/system/clock.hpp"

namespace ringmain::run {

void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::int64_t until_ns) noexcept {
  const int saved = errno;
  while (word == value && engine::now_ns() < until_ns) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const timespec until{until_ns / kSecond, until_ns % kSecond};
    // WAIT_BITSET takes a time, not a duration.
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, &until, nullptr,
              FUTEX_BITSET_MATCH_ANY);
  }
  errno = saved;
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  const int saved = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace ringmain::run
