#include "bus/core/buses.hpp"

#include <cstddef>
#include <mutex>
#include <new>

#include "engine/system/fork.hpp"

#include "bus/core/bus_core.hpp"

namespace ringmain::detail {
namespace {

/// Never destroyed: buses end after static objects do. Not allocated: a bus is listed where nothing
/// may throw.
struct Buses {
  engine::ForkMutex mutex{engine::kForkBuses};
  BusCore* first = nullptr;
};
Buses& all() {
  alignas(Buses) static std::byte room[sizeof(Buses)];
  static Buses& buses = *::new (room) Buses;
  return buses;
}

}  // namespace

void list_bus(BusCore& bus) noexcept {
  Buses& list = all();
  const std::lock_guard lock(list.mutex);
  bus.among_buses.next = list.first;
  if (list.first != nullptr) list.first->among_buses.before = &bus;
  list.first = &bus;
}

void unlist_bus(BusCore& bus) noexcept {
  Buses& list = all();
  const std::lock_guard lock(list.mutex);
  (bus.among_buses.before == nullptr ? list.first : bus.among_buses.before->among_buses.next) =
      bus.among_buses.next;
  if (bus.among_buses.next != nullptr)
    bus.among_buses.next->among_buses.before = bus.among_buses.before;
}

std::vector<engine::Ref<BusCore>> buses() {
  Buses& list = all();
  const std::lock_guard lock(list.mutex);
  std::vector<engine::Ref<BusCore>> found;
  for (BusCore* at = list.first; at != nullptr; at = at->among_buses.next) {
    if (!at->forked()) found.emplace_back(at);
  }
  return found;
}

}  // namespace ringmain::detail
