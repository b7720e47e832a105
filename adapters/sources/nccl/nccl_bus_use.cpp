#include "adapters/sources/nccl/nccl_bus_use.hpp"

#include "bus/in_subscriber.hpp"

namespace ringmain::nccl::detail {
namespace {

// How often this thread is inside, of any bus.
constinit thread_local unsigned entries __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

bool BusUse::enter() noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  ++entries;
  return true;
}

void BusUse::leave() noexcept {
  const std::lock_guard lock(mutex_);
  --entries;
  if (--inside_ == 0) empty_.notify_all();
}

void BusUse::close() noexcept {
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (entries != 0 || in_subscriber()) return;
  empty_.wait(lock, [this] { return inside_ == 0; });
}

}  // namespace ringmain::nccl::detail
