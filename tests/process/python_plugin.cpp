// What a Python extension looks like to fork: a library with a running bus and threads that
// publish.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"

namespace {

using ringmain::tests::Tick;

/// Made by start(), destroyed with the process's static objects, in children as well.
struct Host {
  ringmain::Bus bus{ringmain::tests::with_workers(1)};
  ringmain::Channel<Tick>& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  std::atomic<bool> over{false};
  ringmain::Subscription seen = ticks.subscribe([this](const Tick&) { ++heard; });
  std::vector<std::thread> publishers;

  Host() {
    for (int i = 0; i < 2; ++i) {
      publishers.emplace_back([this] {
        for (std::uint64_t n = 1; !over; ++n) ticks.post({n});
      });
    }
  }
  ~Host() {
    over = true;
    if (!seen.attached()) {  // a child: the threads are its parent's, there is nothing to join
      (void)new std::vector<std::thread>(std::move(publishers));
      return;
    }
    for (auto& t : publishers) t.join();
  }
};
std::unique_ptr<Host> host;

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void start() {
  host = std::make_unique<Host>();
}
/// 0: accepted, 1: forked, 2: anything else.
__attribute__((visibility("default"))) int publish() {
  const auto result = host->ticks.publish({1});
  return result == ringmain::PublishCode::accepted ? 0
         : result == ringmain::PublishCode::forked ? 1
                                                   : 2;
}
__attribute__((visibility("default"))) unsigned long long heard() {
  return host->heard;
}
/// 1: a bus of the caller's own delivers.
__attribute__((visibility("default"))) int own_bus_works() {
  ringmain::Bus bus(ringmain::tests::with_workers(1));
  std::atomic<int> calls{0};
  const auto seen = bus.channel<Tick>().subscribe([&calls](const Tick&) { ++calls; });
  bus.channel<Tick>().post({1});
  return bus.flush(ringmain::tests::kLong) && calls == 1 ? 1 : 0;
}
/// 1: what the parent published is delivered and balances.
__attribute__((visibility("default"))) int balances() {
  host->over = true;
  for (auto& t : host->publishers) t.join();
  host->publishers.clear();
  return host->bus.flush(ringmain::tests::kLong) && host->bus.verify_accounting() ? 1 : 0;
}
}
