// Bus, channel, publisher, subscription: they may end in any order. What does each return then?
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include <ringmain/bus/bus.hpp>

struct Tick {
  int n;
};
constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("example.tick", ringmain::field<&Tick::n>("n"));
}

struct Panel {
  int heard = 0;
  void saw(const Tick&) { ++heard; }
};

/// An object that hears for as long as it lives. Its last member is destroyed first, so no call is
/// running when the others are destroyed.
struct Meter {
  int heard = 0;
  ringmain::Subscription ticks;
  explicit Meter(ringmain::Bus& bus)
      : ticks(bus.channel<Tick>().subscribe([this](const Tick&) { ++heard; })) {}
};

int main() {
  std::optional<ringmain::Bus> bus(std::in_place);
  auto publisher = bus->channel<Tick>().publisher();
  auto panel = std::make_shared<Panel>();
  auto shown = bus->channel<Tick>().subscribe(std::weak_ptr(panel), &Panel::saw);
  int heard = 0;
  {
    const Meter meter(*bus);
    if (!publisher.publish({1}) || !bus->flush(std::chrono::seconds(10))) return 1;
    heard = meter.heard + panel->heard;
  }
  panel.reset();  // the subscription stays, and skips: its owner is gone
  if (!publisher.publish({2}) || !bus->flush(std::chrono::seconds(10))) return 1;
  const auto skipped = shown.stats().skipped;

  bus.reset();  // stops, delivers what was accepted, ends the workers
  const bool closed = publisher.publish({3}) == ringmain::PublishCode::closed;
  const bool done = shown.reset() == ringmain::Detached::done;
  std::printf("heard %d, skipped %llu, closed %s, done %s\n", heard,
              static_cast<unsigned long long>(skipped), closed ? "yes" : "no", done ? "yes" : "no");
  return heard == 2 && skipped == 1 && closed && done ? 0 : 1;
}
