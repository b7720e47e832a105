// flush() and stop(): when is everything delivered?
//
// Both say that they wait, make every thread pass a barrier (asymmetric_fence_heavy: l.closing and
// l.waiting), read how much each lane has published, and wait until that much is consumed. stop()
// closes the channels before, and waits until no publisher is between its two looks at the
// channel's state: after that no event is accepted.
#pragma once
#include <cstdint>

#include "../channel/channel_host.hpp"
#include "../channel/channel_table.hpp"
#include "../system/clock.hpp"
#include "workers.hpp"

namespace ringmain::engine {

/// Waits until `done()` is true; the thread that makes it true moves `key`. False: time ran out.
template <class Done>
bool await(Atomic<std::uint32_t>& key, const Deadline& deadline, Done done) noexcept {
  for (;;) {
    const std::uint32_t seen = key.load(std::memory_order_acquire);  // e.consumed
    if (done()) return true;
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return false;
    futex_wait(key, seen, left);
  }
}

/// Threads: any, outside callbacks.
class Flush {
 public:
  Flush(ChannelHost& host, ChannelTable& table, Workers& workers) noexcept
      : host_(host), table_(table), workers_(workers) {}

  /// True: all that was accepted before the call has been delivered, in channels or in mailboxes.
  /// `closing`: closes them first, so nothing more is accepted.
  bool drain_all(bool mailboxes, bool closing, std::int64_t limit_ns) noexcept;

 private:
  void help(ChannelCore& channel) noexcept;
  bool quiet(bool mailboxes, std::int64_t limit_ns) const noexcept;
  bool delivered(bool mailboxes, std::int64_t limit_ns) noexcept;
  bool runs_over(const Deadline& deadline) noexcept;

  ChannelHost& host_;
  ChannelTable& table_;
  Workers& workers_;
};

}  // namespace ringmain::engine
