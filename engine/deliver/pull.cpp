#include "engine/deliver/pull.hpp"

#include <cerrno>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/channel/channel_core.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {
std::uint32_t prepare_wait(ChannelCore& channel) noexcept {
  const std::uint32_t key = channel.pull.key.load(std::memory_order_acquire);  // m.told
  // An exchange and no store: what a feeder did before it found `told` set, and left, must be seen
  // from here on.
  (void)channel.pull.told.exchange(0, std::memory_order_acq_rel);  // m.told
  channel.line.leased.store(0, std::memory_order_release);         // e.leased
  asymmetric_fence_heavy();                                        // l.attended
  return key;
}

bool wait_for_events(ChannelCore& channel, std::int64_t limit_ns) noexcept {
  if (channel.inert()) return false;
  if (channel.host().manual()) {  // the waiting thread delivers by itself
    (void)channel.host().deliver(ChannelHost::kAll, limit_ns);
    return channel.anything_left();
  }
  const Deadline deadline(limit_ns);
  for (;;) {
    const std::uint32_t key = prepare_wait(channel);
    if (channel.anything_left()) break;
    const std::int64_t left = deadline.left_ns();
    if (left == 0 || channel.host().stopped()) break;
    if (channel.pull.interrupted.exchange(0, std::memory_order_acquire) != 0)
      break;  // m.interrupted
    futex_wait(channel.pull.key, key, left);
  }
  if (channel.pull.fd.load(std::memory_order_relaxed) < 0) {  // relaxed: the reader's own
    channel.line.leased.store(1, std::memory_order_release);  // e.leased: awake again
  }
  return channel.anything_left();
}

int reader_fd(ChannelCore& channel) noexcept {
  if (channel.inert()) return -1;                            // the parent reads and writes it
  int fd = channel.pull.fd.load(std::memory_order_relaxed);  // relaxed: the reader's own
  if (fd >= 0) return fd;
  fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return -1;
  channel.pull.fd.store(fd, std::memory_order_release);  // m.told
  after_drain(channel);
  return fd;
}

void before_drain(ChannelCore& channel) noexcept {
  if (channel.inert()) return;
  const int fd = channel.pull.fd.load(std::memory_order_relaxed);  // relaxed: the reader's own
  if (fd < 0) return;
  std::uint64_t told = 0;
  (void)!::read(fd, &told, sizeof told);  // does not block where nothing is there
}

void after_drain(ChannelCore& channel) noexcept {
  if (channel.inert()) return;
  const int fd = channel.pull.fd.load(std::memory_order_relaxed);  // relaxed: the reader's own
  if (fd < 0) return;
  (void)prepare_wait(channel);
  if (channel.anything_left()) make_readable(fd);
}

}  // namespace ringmain::engine
