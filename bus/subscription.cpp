#include "bus/subscription.hpp"

#include <utility>

#include "bus/core/subscription_core.hpp"

namespace ringmain {

Subscription detail::handle_of(SubscriptionCore& held) noexcept {
  held.hold();
  return Subscription(&held);
}

Subscription::~Subscription() {
  if (held_ == nullptr) return;
  reset();
  if (held_ == nullptr) return;
  held_->handle_is_gone();
  held_->release();
}

Detached Subscription::reset() noexcept {
  return reset_for(nanoseconds(-1));
}

Detached Subscription::reset_for(nanoseconds limit) noexcept {
  if (held_ == nullptr) return Detached::was_not_attached;
  // The captures may hold this very handle, which is destroyed with them.
  const engine::Ref<detail::SubscriptionCore> kept = held_;
  const Detached result = kept->detach(limit.count());
  const bool over = result == Detached::done || result == Detached::was_not_attached;
  if (over && !kept->handle_gone()) std::exchange(held_, nullptr)->release();
  return result;
}

void Subscription::release() noexcept {
  if (held_ == nullptr) return;
  const auto host = held_->host();
  if (held_->forked()) return std::exchange(held_, nullptr)->release();
  if (!host || !host->keep_until_the_end(*held_)) held_->detach_deferred();  // the bus has ended
  std::exchange(held_, nullptr)->release();
}

bool Subscription::readmit() noexcept {
  return held_ != nullptr && !held_->forked() && held_->readmit();
}

bool Subscription::attached() const noexcept {
  return held_ != nullptr && held_->attached();
}
SubscriberStats Subscription::stats() const noexcept {
  return held_ == nullptr ? SubscriberStats{} : held_->stats();
}

}  // namespace ringmain
