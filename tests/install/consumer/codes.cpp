// Does a program without exceptions and RTTI get codes where others catch?
#include <chrono>
#include <cstdint>
#include <cstdio>

#include <ringmain/bus/bus.hpp>

struct Tick {
  std::uint64_t id;
};
constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("consumer.tick", ringmain::field<&Tick::id>("id"));
}

int main() {
  auto made = ringmain::Bus::try_make();
  if (!made) return 1;
  ringmain::Bus& bus = *made.value();
  auto& ticks = bus.channel<Tick>();
  std::uint64_t sum = 0;
  auto seen = ticks.try_subscribe([&](const Tick& tick) { sum += tick.id; });
  auto views = bus.try_subscribe("consumer.*", [](const ringmain::EventView&) {});
  auto first = ticks.try_subscribe_inline([](const Tick&) {});
  if (!seen || !views || !first) return 1;
  auto publisher = ringmain::publisher<Tick>(bus);
  for (std::uint64_t id = 1; id <= 100; ++id) (void)publisher.publish({id});
  if (!bus.flush(std::chrono::seconds(60))) return 1;
  seen.value().reset();
  auto refused = ticks.try_subscribe([](const Tick&) {}, {.overflow = ringmain::Overflow::block});
  std::printf("sum %llu\n", static_cast<unsigned long long>(sum));
  if (refused) return 1;
  std::fprintf(stderr, "%s\n", refused.error().message.c_str());
}
