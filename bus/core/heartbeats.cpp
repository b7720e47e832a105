#include "bus/core/heartbeats.hpp"

#include <mutex>
#include <utility>

#include "engine/system/fork.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: watchdogs end after static objects do.
struct Known {
  engine::ForkMutex mutex{engine::kForkBuses};
  std::vector<std::weak_ptr<Heartbeat>> all;
};
Known& known() {
  static Known& them = *new Known;
  return them;
}

}  // namespace

std::shared_ptr<Heartbeat> begin_heartbeat(std::string bus, std::int64_t period_ns) {
  auto made = std::make_shared<Heartbeat>();
  made->bus = std::move(bus);
  made->period_ns = period_ns;
  Known& them = known();
  const std::lock_guard lock(them.mutex);
  std::erase_if(them.all, [](const auto& one) { return one.expired(); });
  them.all.push_back(made);
  return made;
}

std::vector<std::shared_ptr<const Heartbeat>> heartbeats() {
  std::vector<std::shared_ptr<const Heartbeat>> all;
  Known& them = known();
  const std::lock_guard lock(them.mutex);
  for (const auto& one : them.all) {
    if (auto held = one.lock()) all.push_back(std::move(held));
  }
  return all;
}

}  // namespace ringmain::detail
