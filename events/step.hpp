// What does a trainer publish about where it is? Steps, phases in them, micro-batches in those.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::step {

enum class Edge : std::uint8_t { begin, end };

/// `train.step`: a step, a phase of it or a micro-batch begins or ends. Those inside repeat what
/// they are in, so that each event says by itself where it belongs.
struct Step {
  std::uint64_t step = 0;
  Name phase;                     // "" for the step itself
  std::uint32_t micro_batch = 0;  // from 1; 0 outside of one
  Edge edge = Edge::begin;
  std::int64_t took_ns = 0;  // at the end: since its begin, CLOCK_MONOTONIC
};
constexpr auto describe(EventOf<Step>) {
  return event("train.step", field<&Step::step>("step", Unit::id), field<&Step::phase>("phase"),
               field<&Step::micro_batch>("micro_batch", Unit::count),
               field<&Step::edge>("edge", "begin,end"), field<&Step::took_ns>("took_ns", Unit::ns));
}

}  // namespace ringmain::step
