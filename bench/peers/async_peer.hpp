// A peer that hands events to a worker thread: the questions that are measured with it, and what
// most such peers have in common.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "bench/events.hpp"
#include "bench/producers.hpp"
#include "bench/questions.hpp"

namespace ringmain::bench {

/// Ends a worker that waits for events: no event of a question has this number.
constexpr std::uint64_t kEnd = kHold - 1;

/// The callback as a user would keep it.
template <class E, class Hear>
std::function<void(const E&)> callback_of(Hear& hear) {
  return [&hear](const E& event) { hear(event); };
}

/// A producer for peers that any thread may push to.
template <class System>
auto shared_producer(System& system) {
  return [&system](auto make) { return system.push(make); };
}

template <class Of>
bool add_async_peer(const char* name, bool parks = true) {
  const auto nothing = [](auto&) { return 0; };
  add("publish_live", name, {}, publish_live<Of, Payload>);
  add("throughput", name, {{"payload_bytes", 32}}, throughput<Of, Payload>);
  for (const std::int64_t rate : {100'000, 1'000'000}) {
    add("publish_paced", name, {{"per_second", rate}},
        [rate](Repetition& r) { publish_paced<Of>(r, rate); });
    add("latency", name, {{"per_second", rate}}, [rate](Repetition& r) { latency<Of>(r, rate); });
  }
  if (parks) {
    add("wake", name, {}, [nothing](Repetition& r) { publish_waking<Of>(r, nothing); });
  }
  return add_publishers<Of>(name, {1, 4, 16});
}

}  // namespace ringmain::bench
