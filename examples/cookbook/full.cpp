// What happens when nobody keeps up, and how do I see what was lost?
#include <atomic>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  std::atomic<bool> go{false};
  auto stuck = bus.channel<Step>().subscribe([&](const Step&) { go.wait(false); });
  // Overflow::block waits for room instead, drop_oldest keeps the newest.
  auto steps = bus.channel<Step>().publisher({.capacity_events = 2});
  if (!steps) return 1;
  int lost = 0;
  for (int n = 1; n <= 5; ++n) {
    if (steps.value().publish({n, 2.5}) == ringmain::PublishCode::full) ++lost;
  }
  const ringmain::Ledger ledger = steps.value().ledger();
  std::printf("%d lost, %d counted\n", lost, static_cast<int>(ledger.dropped));
  go = true;
  go.notify_all();
  return lost == 3 && ledger.dropped == 3 ? 0 : 1;
}
