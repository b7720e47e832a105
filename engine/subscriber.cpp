#include "ringmain/engine/subscriber.hpp"

#include <new>

namespace ringmain::engine {
namespace {
// Initial-exec: read on every dispatch, and never allocated behind a caller's back.
thread_local std::uint32_t callback_depth __attribute__((tls_model("initial-exec"))) = 0;
}  // namespace

Subscriber* make_subscriber(std::size_t captures_bytes) noexcept {
  void* room = ::operator new (Subscriber::captures_offset() + captures_bytes, std::align_val_t{64},
                               std::nothrow);
  if (room == nullptr) return nullptr;
  return ::new (room) Subscriber;
}

void drop_subscriber(Subscriber* subscriber) noexcept {
  if (subscriber->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // R1
  subscriber->~Subscriber();
  ::operator delete (subscriber, std::align_val_t{64});
}

void destroy_captures(Subscriber& subscriber) noexcept {
  {
    const CallbackScope scope;
    subscriber.destroy(subscriber);
  }
  subscriber.gate.gone();
}

void subscriber_threw(Subscriber& subscriber) noexcept {
  subscriber.threw.add(1);
  if (subscriber.detach_on_throw) subscriber.gate.close();
}

bool in_callback() noexcept {
  return callback_depth != 0;
}
CallbackScope::CallbackScope() noexcept {
  ++callback_depth;
}
CallbackScope::~CallbackScope() {
  --callback_depth;
}

}  // namespace ringmain::engine
