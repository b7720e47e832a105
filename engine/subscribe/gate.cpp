#include "engine/subscribe/gate.hpp"

#include "engine/subscribe/shown.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {

bool Gate::look_at_shown(const Subscriber* whose) noexcept {
  asymmetric_fence_heavy();  // l.shown
  return whose != nullptr && whose->shown_by->calling(*whose);
}

/// Nobody knows who leaves last, so each looks for others; the last one finds none.
bool Gate::leave_closed(const Subscriber* whose) noexcept {
  const std::uint32_t now = word_.load(std::memory_order_acquire);  // g.calls
  if ((now & kDeferred) != 0 && (now & kDead) == 0 && !shown(whose) && claim()) return true;
  if ((now & kAwaited) != 0) {
    // The word changes before anybody is woken: a sleep that is about to begin ends by that.
    word_.fetch_and(~kAwaited, std::memory_order_acq_rel);  // g.calls
    futex_wake(word_, kEverybody);
  }
  return false;
}

Gate::Waited Gate::wait(std::int64_t limit_ns, const Subscriber* whose) noexcept {
  bool called = shown(whose);
  if (!called && claim()) return Waited::claimed;  // most are idle then: no clock is read
  const Deadline deadline(limit_ns);
  for (;;) {
    const std::uint32_t now = word_.load(std::memory_order_acquire);  // g.calls
    if ((now & kGone) != 0) return Waited::gone;
    if (!called && (now & kCount) == 0 && (now & kDead) == 0) {
      if (claim()) return Waited::claimed;
      continue;
    }
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return Waited::timeout;
    if ((now & kAwaited) == 0) {
      word_.fetch_or(kAwaited, std::memory_order_acq_rel);  // g.calls: then look again
    } else {
      futex_wait(word_, now, left);
    }
    called = shown(whose);
  }
}

bool Gate::claim_unshown(const ShownCalls& by, const Subscriber& whose) noexcept {
  asymmetric_fence_heavy();  // l.shown
  return !by.calling(whose) && claim_once();
}

bool Gate::claim_retired(const ShownCalls& by, const Subscriber& whose) noexcept {
  asymmetric_fence_heavy();  // l.shown
  if (by.calling(whose)) {
    word_.fetch_and(~kRetired, std::memory_order_acq_rel);  // g.calls
    // The last call may have left in between, and have found it retired.
    if (by.calling(whose)) return false;
  }
  return claim_once();
}

Gate::Waited Gate::wait_unshown(const ShownCalls& by, const Subscriber& whose,
                                std::int64_t limit_ns, std::int64_t look_ns) noexcept {
  asymmetric_fence_heavy();  // l.shown
  bool called = by.calling(whose);
  if (!called && claim_once()) return Waited::claimed;  // most are idle then: no clock is read
  const Deadline deadline(limit_ns);
  for (;;) {
    const std::uint32_t now = word_.load(std::memory_order_acquire);  // g.calls
    if ((now & kGone) != 0) return Waited::gone;
    if (!called && (now & kDead) == 0) {
      if (claim_once()) return Waited::claimed;
      continue;
    }
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return Waited::timeout;
    if ((now & kAwaited) == 0) {
      word_.fetch_or(kAwaited, std::memory_order_acq_rel);  // g.calls
      asymmetric_fence_heavy();                             // l.shown: then look again
    } else {
      futex_wait(word_, now, look_ns >= 0 && (left < 0 || look_ns < left) ? look_ns : left);
    }
    called = by.calling(whose);
  }
}

}  // namespace ringmain::engine
