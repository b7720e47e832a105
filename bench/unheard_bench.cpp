// Question: what does a publish cost while nobody listens, against a load and a branch (row 1)?
#include <atomic>
#include <cstdint>
#include <vector>

#include "bus/bus.hpp"

#include "bench/events.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

void one_cycle(Repetition& repetition) {
  repetition.value(cycle_ns());
}

void load_and_branch(Repetition& repetition) {
  alignas(128) std::atomic<std::uint32_t> line{0};
  auto* where = &line;
  benchmark::DoNotOptimize(where);
  std::uint64_t taken = 0;
  repetition.value(time_each([&] {
    if (where->load(std::memory_order_relaxed) != 0) [[unlikely]]
      ++taken;
    benchmark::ClobberMemory();
  }));
  benchmark::DoNotOptimize(taken);
}

void wanted(Repetition& repetition) {
  Bus bus;
  auto publisher = bus.channel<Payload>("bench.unheard").publisher();
  std::uint64_t heard = 0;
  repetition.value(time_each([&] {
    if (publisher.wanted()) [[unlikely]]
      ++heard;
    benchmark::ClobberMemory();
  }));
  if (heard != 0) repetition.fail("nobody listens, yet somebody was heard");
}

void publish(Repetition& repetition) {
  Bus bus;
  auto publisher = bus.channel<Payload>("bench.unheard").publisher();
  std::uint64_t built = 0;
  repetition.value(time_each([&] {
    auto result =
        publisher.publish_with([&built]() noexcept { return make_event<Payload>(++built, 0); });
    benchmark::DoNotOptimize(result.code);  // as a user looks at it: not the whole through memory
    benchmark::ClobberMemory();
  }));
  if (built != 0) repetition.fail("an event was built although nobody listens");
}

void channel_publish(Repetition& repetition) {
  Bus bus;
  auto& channel = bus.channel<Payload>("bench.unheard");
  const Payload event = make_event<Payload>(1, 0);
  repetition.value(time_each([&] {
    auto result = channel.publish(event);
    benchmark::DoNotOptimize(result.code);  // as a user looks at it: not the whole through memory
    benchmark::ClobberMemory();
  }));
}

[[maybe_unused]] const bool kAdded[] = {
    add("unheard", "cycle", {}, one_cycle),
    add("unheard", "load_and_branch", {}, load_and_branch),
    add("unheard", "bus_wanted", {}, wanted),
    add("unheard", "bus_publish_with", {}, publish),
    add("unheard", "bus_channel_publish", {}, channel_publish),
};

}  // namespace
}  // namespace ringmain::bench
