// Unsubscribe while others publish: after reset() what the callback used may be freed.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>

#include <ringmain/bus/bus.hpp>

struct Tick {
  std::uint64_t n;
};
constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("example.tick", ringmain::field<&Tick::n>("n"));
}

int main() {
  ringmain::Bus bus;
  auto& ticks = bus.channel<Tick>();
  std::atomic<bool> over{false};
  std::jthread training([&] {
    for (std::uint64_t n = 0; !over; ++n) ticks.post({n});
  });
  for (int visit = 1; visit <= 1000; ++visit) {
    auto heard = std::make_unique<std::atomic<std::uint64_t>>(0);
    auto counting = ticks.subscribe([&count = *heard](const Tick&) { ++count; });
    if (visit % 250 == 0) {
      while (*heard == 0) std::this_thread::yield();
    }
    counting.reset();  // the callback is not running, and will never run again
    if (visit % 250 == 0) {
      std::printf("visit %d heard %llu ticks\n", visit,
                  static_cast<unsigned long long>(heard->load()));
    }
    heard.reset();  // so this is safe
  }
  over = true;
}
