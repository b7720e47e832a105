// Question: how fast does a recorded training run go through the channels, end to end?
#include <optional>
#include <stop_token>
#include <string>

#include "bus/bus.hpp"

#include "adapters/sinks/summary.hpp"
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
  auto summary = sinks::Summary::open();
  if (!summary) return repetition.fail("no summary");
  replay::for_each_kind([&]<class E>(std::size_t) { summary.value().listen(bus.channel<E>()); });
  const std::int64_t since = ticks();
  auto source = replay::Source::attach(bus, *recorded, flat_out());
  if (!source) return repetition.fail("the system gave no thread");
  const replay::Outcome outcome = source.value().wait();
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  const double seconds = ns_since(since) * 1e-9;
  if (outcome.accepted != summary.value().events()) repetition.fail("events were lost");
  repetition.value(static_cast<double>(outcome.accepted) / seconds);
  repetition.figure("events", static_cast<double>(outcome.accepted));
  repetition.figure("threads", outcome.threads);
}

[[maybe_unused]] const bool kAdded = add("replay", "bus", {}, replay_flat_out);

}  // namespace
}  // namespace ringmain::bench
