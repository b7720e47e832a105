#include "bus/test_bus.hpp"

#include <algorithm>

#include "engine/channel/channel_figures.hpp"

#include "bus/core/bus_core.hpp"

namespace ringmain {

TestBus::TestBus() : Bus(new detail::BusCore(detail::BusCore::ByHand{})) {}

std::size_t TestBus::deliver() {
  return deliver(engine::ChannelHost::kAll);
}

std::size_t TestBus::deliver(std::size_t events_max) {
  return core_->engine().deliver(events_max);
}

std::size_t TestBus::queued() const {
  std::size_t sum = 0;
  for (const auto& c : core_->engine().channels()) {
    if (!c->options().pulled) sum += counts_of(*c).pending;
  }
  return sum;
}

std::int64_t TestBus::time_ns() const noexcept {
  return core_->engine().manual_time()->load();
}

void TestBus::set_time_ns(std::int64_t time_ns) noexcept {
  core_->engine().manual_time()->store(std::max<std::int64_t>(1, time_ns));
}

}  // namespace ringmain
