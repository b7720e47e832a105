// What a program that only publishes includes.
#include <cstdint>

#include <ringmain/bus/publisher.hpp>

struct Tick {
  std::uint64_t id;
};
constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("consumer.tick", ringmain::field<&Tick::id>("id"));
}

int main() {
  auto ticks = ringmain::publisher<Tick>();
  return ticks.publish({7}) == ringmain::PublishCode::unheard && !ticks.wanted() ? 0 : 1;
}
