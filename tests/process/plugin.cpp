// A library that is loaded, says and hears something, and is unloaded again: its event type, its
// description, its callbacks and its captures lie in it. Built twice, for two copies of ringmain.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "bus/bus.hpp"

#define RINGMAIN_TESTS_SHOWN __attribute__((visibility("default")))

namespace {

struct Ping {
  std::uint64_t n = 0;
};
constexpr auto describe(ringmain::EventOf<Ping>) {
  return ringmain::event("plugin.ping", ringmain::field<&Ping::n>("n", ringmain::Unit::count));
}

/// All that the plugin keeps between its functions; gone before it is unloaded.
struct State {
  ringmain::Bus& bus;
  std::atomic<std::uint64_t> heard{0};
  ringmain::Channel<Ping>& pings = bus.channel<Ping>();
  ringmain::Publisher<Ping> publisher = pings.publisher();
  // Not make_shared: GCC gives its tag a unique symbol, and dlclose would do nothing.
  std::shared_ptr<int> captured{new int(1)};
  ringmain::Subscription each =
      pings.subscribe([this, c = captured](const Ping&) { heard += static_cast<unsigned>(*c); });
  ringmain::Subscription isolated = pings.subscribe(
      [this, c = captured](const Ping&, const ringmain::Stamp&) { heard += 1; }, own_mailbox());
  ringmain::Subscription views = bus.subscribe(
      "plugin.*",
      [this, c = captured](const ringmain::EventView& e) { heard += e.as<Ping>() ? 1 : 0; });

  explicit State(ringmain::Bus& b) : bus(b) {}
  static ringmain::SubscribeOptions own_mailbox() {
    ringmain::SubscribeOptions o;
    o.served = ringmain::Served::isolated;
    return o;
  }
};
std::optional<State> state;

}  // namespace

extern "C" {
RINGMAIN_TESTS_SHOWN void* process_bus() {
  return &ringmain::Bus::process();
}
/// Attaches to that bus.
RINGMAIN_TESTS_SHOWN void attach(void* bus) {
  state.emplace(*static_cast<ringmain::Bus*>(bus));
}
/// Publishes `n` events on a publisher, on this thread's lane and from a thread that ends.
RINGMAIN_TESTS_SHOWN void publish(std::uint64_t n) {
  for (std::uint64_t i = 1; i <= n; ++i) {
    (void)state->publisher.publish({i});
    (void)state->pings.publish({i});
  }
  std::thread([n] { (void)state->pings.publish({n}); }).join();
}
/// 1: all three subscribers heard all of it.
RINGMAIN_TESTS_SHOWN int heard(std::uint64_t n) {
  return state->bus.flush(std::chrono::seconds(60)) && state->heard == 3 * (2 * n + 1) ? 1 : 0;
}
/// Detaches by reset(); 1: each was done and no capture lives.
RINGMAIN_TESTS_SHOWN int detach() {
  using ringmain::Detached;
  bool done = state->each.reset() == Detached::done;
  done &= state->isolated.reset() == Detached::done;
  done &= state->views.reset() == Detached::done;
  done &= state->captured.use_count() == 1;
  state.reset();
  return done ? 1 : 0;
}
/// The same, but every reset() happens inside a callback; wait_quiescent() is enough after it.
RINGMAIN_TESTS_SHOWN int detach_in_a_callback() {
  using ringmain::Detached;
  std::atomic<int> deferred{0};
  {
    auto once = state->bus.channel<Ping>("plugin.once").subscribe([&](const Ping&) {
      deferred += state->each.reset() == Detached::deferred ? 1 : 0;
      deferred += state->isolated.reset() == Detached::deferred ? 1 : 0;
      deferred += state->views.reset() == Detached::deferred ? 1 : 0;
    });
    (void)state->bus.channel<Ping>("plugin.once").publish({1});
    if (!state->bus.flush(std::chrono::seconds(60))) return 0;
  }
  constexpr ringmain::nanoseconds kForEver{-1};
  bool done = deferred == 3;
  done &= state->each.wait_quiescent(kForEver) == Detached::done;
  done &= state->isolated.wait_quiescent(kForEver) == Detached::done;
  done &= state->views.wait_quiescent(kForEver) == Detached::done;
  done &= state->captured.use_count() == 1;
  state.reset();
  return done ? 1 : 0;
}
}
