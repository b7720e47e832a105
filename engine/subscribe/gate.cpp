#include "engine/subscribe/gate.hpp"

#include "engine/system/clock.hpp"

namespace ringmain::engine {

Gate::Waited Gate::wait(std::int64_t limit_ns, std::int64_t look_ns) noexcept {
  if (claim()) return Waited::claimed;  // most subscribers are idle then: no clock is read
  const Deadline deadline(limit_ns);
  for (;;) {
    const std::uint32_t now = word_.load(std::memory_order_acquire);  // g.calls
    if ((now & kGone) != 0) return Waited::gone;
    if ((now & kCount) == 0 && (now & kDead) == 0) {
      if (claim()) return Waited::claimed;
      continue;
    }
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return Waited::timeout;
    if ((now & kAwaited) == 0) {
      word_.fetch_or(kAwaited, std::memory_order_acq_rel);  // g.calls: then look again
      continue;
    }
    futex_wait(word_, now, look_ns >= 0 && (left < 0 || look_ns < left) ? look_ns : left);
  }
}

}  // namespace ringmain::engine
