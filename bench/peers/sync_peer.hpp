// A peer that calls its subscribers in the publishing thread: the questions that are measured with
// it.
//
// It has subscribe(function), which returns an object whose destruction or detach() unsubscribes,
// and publish(event).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "engine/system/atomics.hpp"
#include "engine/system/cache_line.hpp"

#include "bench/events.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {

struct alignas(engine::kLineBytes) SyncCell {
  volatile std::uint64_t sum = 0;
};

/// A second thread lives meanwhile: the C library drops its locks where there is one only.
class Bystander {
 public:
  Bystander() : thread_([this] { over_.wait(false); }) {}
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() {
    over_ = true;
    over_.notify_all();
  }

 private:
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

/// Stretches of 200 publishes, 10 ms of them and at least five; nanoseconds for each publish.
template <class Peer>
std::vector<double> time_publishes(Peer& peer) {
  std::vector<double> ns;
  std::uint64_t number = 1;
  const std::int64_t until = ticks() + ticks_of(10e6);
  do {
    const std::int64_t since = ticks();
    for (int i = 0; i < 200; ++i) peer.publish(make_event<Payload>(number++, 0));
    ns.push_back(ns_since(since) / 200);
  } while (ticks() < until || ns.size() < 5);
  return ns;
}

template <class Peer>
auto subscribe_cells(Peer& peer, std::vector<SyncCell>& cells) {
  using Subscribed = decltype(peer.subscribe([](const Payload&) {}));
  std::vector<Subscribed> subscribed;
  subscribed.reserve(cells.size());
  for (SyncCell& cell : cells) {
    subscribed.push_back(peer.subscribe(
        [where = &cell](const Payload& event) { where->sum = where->sum + event.number; }));
  }
  return subscribed;
}

template <class Peer>
void inline_publish(Repetition& repetition, unsigned subscribers) {
  const Bystander bystander;
  Peer peer;
  std::vector<SyncCell> cells(subscribers);
  const auto subscribed = subscribe_cells(peer, cells);
  repetition.value(median(time_publishes(peer)));
  for (const SyncCell& cell : cells) {
    if (cell.sum == 0) repetition.fail("a subscriber was not called");
  }
}

/// Four subscribers, and a second thread that subscribes and unsubscribes without a pause.
template <class Peer>
void inline_churn(Repetition& repetition, bool churning) {
  const Bystander bystander;
  Peer peer;
  std::vector<SyncCell> cells(4);
  const auto subscribed = subscribe_cells(peer, cells);
  std::atomic<std::uint64_t> changes{0};
  {
    const std::jthread churner([&](const std::stop_token& stop) {
      pin_worker();
      SyncCell cell;
      while (churning && !stop.stop_requested()) {
        {
          [[maybe_unused]] const auto visitor =
              peer.subscribe([&cell](const Payload& event) { cell.sum = event.number; });
        }
        changes.store(changes.load(std::memory_order_relaxed) + 2, std::memory_order_relaxed);
      }
    });
    while (churning && changes.load(std::memory_order_relaxed) == 0) engine::pause();
    const std::int64_t since = ticks();
    const std::uint64_t before = changes.load(std::memory_order_relaxed);
    // The mean over all of them, because publishes that wait for milliseconds are rare.
    const std::vector<double> ns = time_publishes(peer);
    double sum = 0;
    for (const double one : ns) sum += one;
    repetition.value(sum / static_cast<double>(ns.size()));
    repetition.figure("changes_per_second",
                      static_cast<double>(changes.load() - before) / (ns_since(since) * 1e-9));
  }
}

template <class Peer>
bool add_sync_peer(const char* name, bool threads = true) {
  for (const unsigned subscribers : {0u, 1u, 4u, 16u}) {
    add("inline", name, {{"subscribers", subscribers}},
        [subscribers](Repetition& r) { inline_publish<Peer>(r, subscribers); });
  }
  if (!threads) return true;
  for (const bool churning : {false, true}) {
    add("inline_churn", name, {{"flat_out", churning ? 1 : 0}},
        [churning](Repetition& r) { inline_churn<Peer>(r, churning); });
  }
  return true;
}

}  // namespace ringmain::bench
