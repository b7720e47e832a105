// Question: how fast does a recorded training run go through the channels, end to end?
#include <array>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <stop_token>
#include <vector>

#include "bus/bus.hpp"

#include "adapters/sources/replay/replay_source.hpp"

#include "bench/on_bus.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {
namespace {

replay::ReplayOptions flat_out() {
  replay::ReplayOptions options;
  options.speed = 0;
  options.loops = 10;
  return options;
}

const replay::Recording* recording() {
  static const auto loaded = [] {
    replay::LoadProgress progress;
    return replay::Recording::load({RINGMAIN_BENCH_TRACE}, flat_out(), std::stop_token{}, progress);
  }();
  return loaded ? &const_cast<Result<replay::Recording>&>(loaded).value() : nullptr;
}

/// The recorded threads publish, one worker counts every event by channel.
void replay_flat_out(Repetition& repetition) {
  const replay::Recording* recorded = recording();
  if (recorded == nullptr) return repetition.fail("the trace in examples/traces could not be read");
  const AnyCore any_core;
  Bus bus(bus_options(Worker::loose));
  std::array<std::atomic<std::uint64_t>, replay::kKinds> heard{};
  std::vector<Subscription> counting;
  replay::for_each_kind([&]<class E>(std::size_t kind) {
    counting.push_back(bus.channel<E>().subscribe_batch(
        [&n = heard[kind]](Batch<E> batch) { n += batch.size(); }));
  });
  const std::int64_t since = ticks();
  auto source = replay::Source::attach(bus, *recorded, flat_out());
  if (!source) return repetition.fail("the system gave no thread");
  const replay::Outcome outcome = source.value().wait();
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  const double seconds = ns_since(since) * 1e-9;
  const auto all = std::accumulate(heard.begin(), heard.end(), std::uint64_t{0});
  if (outcome.accepted != all) repetition.fail("events were lost");
  repetition.value(static_cast<double>(outcome.accepted) / seconds);
  repetition.figure("events", static_cast<double>(outcome.accepted));
  repetition.figure("threads", outcome.threads);
}

[[maybe_unused]] const bool kAdded = add("replay", "bus", {}, replay_flat_out);

}  // namespace
}  // namespace ringmain::bench
