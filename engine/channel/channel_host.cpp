#include "engine/channel/channel_host.hpp"

#include <climits>

namespace ringmain::engine {

void ChannelHost::tell_waiters() noexcept {
  done_key_.fetch_add(1, std::memory_order_release);  // e.consumed
  futex_wake(done_key_, INT_MAX);
}

}  // namespace ringmain::engine
