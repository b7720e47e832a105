#include "engine/subscribe/retire_list.hpp"

#include "engine/subscribe/shown.hpp"

namespace ringmain::engine {

bool RetireList::retire(Subscriber& subscriber) noexcept {
  subscriber.holders.fetch_add(1, std::memory_order_relaxed);  // relaxed: the caller's row holds it
  subscriber.shown_by->keep();
  Subscriber* top = top_.load(std::memory_order_acquire);  // y.retired
  for (;;) {
    subscriber.retired_before = top == closed() ? nullptr : top;
    if (top == closed()) break;
    if (top_.compare_exchange_weak(top, &subscriber,
                                   std::memory_order_seq_cst,     // y.retired, s.signal
                                   std::memory_order_acquire)) {  // y.retired
      return true;
    }
  }
  reclaim(&subscriber);
  return false;
}

void RetireList::reclaim_all() noexcept {
  Subscriber* top = top_.load(std::memory_order_acquire);  // y.retired
  while (top != nullptr && top != closed()) {
    if (top_.compare_exchange_weak(top, nullptr, std::memory_order_acq_rel,  // y.retired
                                   std::memory_order_acquire)) {             // y.retired
      return reclaim(top);
    }
  }
}

void RetireList::close() noexcept {
  Subscriber* top = top_.exchange(closed(), std::memory_order_acq_rel);  // y.retired
  if (top != closed()) reclaim(top);
}

void RetireList::reclaim(Subscriber* top) noexcept {
  const CallbackScope
      scope;  // destructors of captures are user code, which must not wait for a callback
  while (top != nullptr) {
    Subscriber* const one = top;
    top = one->retired_before;
    const ShownCalls& by = *one->shown_by;
    if (one->gate.claim_retired(by, *one)) destroy_captures(*one);
    drop_subscriber(one);
    by.let_go();
  }
}

}  // namespace ringmain::engine
