// Can a program of somebody else publish and subscribe with an installed copy?
#include <chrono>
#include <cstdint>
#include <iostream>

#include <ringmain/bus/bus.hpp>

struct Tick {
  std::uint64_t id;
};

constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("consumer.tick", ringmain::field<&Tick::id>("id"));
}

int main() {
  ringmain::Bus bus;
  auto& ticks = bus.channel<Tick>();
  std::uint64_t sum = 0;
  ringmain::Subscription seen = ticks.subscribe([&](const Tick& tick) { sum += tick.id; });
  for (std::uint64_t id = 1; id <= 100; ++id) ticks.post({.id = id});
  if (!bus.flush(std::chrono::seconds(60))) return 1;
  seen.reset();
  std::cout << "sum " << sum << '\n';
}
