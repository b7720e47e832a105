#include "engine/subscribe/subscriber.hpp"

#include <new>

namespace ringmain::engine {
namespace {
// Initial-exec: read on every dispatch, and never allocated on first use.
thread_local std::uint32_t callback_depth __attribute__((tls_model("initial-exec"))) = 0;

/// The subscribers whose captures this thread is destroying, innermost first.
struct Destroying {
  const Subscriber* subscriber;
  const Destroying* outer;
};
thread_local const Destroying* destroying __attribute__((tls_model("initial-exec"))) = nullptr;
}  // namespace

Subscriber* make_subscriber(std::size_t captures_bytes) noexcept {
  void* room = ::operator new (Subscriber::captures_offset() + captures_bytes, std::align_val_t{64},
                               std::nothrow);
  if (room == nullptr) return nullptr;
  return ::new (room) Subscriber;
}

void drop_subscriber(Subscriber* subscriber) noexcept {
  if (subscriber->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // r.released
  subscriber->~Subscriber();
  ::operator delete (subscriber, std::align_val_t{64});
}

void destroy_captures(Subscriber& subscriber) noexcept {
  const Destroying mine{&subscriber, destroying};
  destroying = &mine;
  subscriber.destroy(subscriber);
  destroying = mine.outer;
  subscriber.gate.gone();
}

bool destroyed_by_this_thread(const Subscriber& subscriber) noexcept {
  for (const Destroying* d = destroying; d != nullptr; d = d->outer) {
    if (d->subscriber == &subscriber) return true;
  }
  return false;
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
