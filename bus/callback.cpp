#include "bus/callback.hpp"

#include "engine/channel/channel_core.hpp"

namespace ringmain::detail {

Stamp stamp_of(const engine::Run& run, std::size_t i) noexcept {
  const engine::SlotHeader& header = run.header(i);
  if (const engine::Envelope* e = run.envelope(i)) {
    return {header.time_ns, e->sequence, e->publisher, static_cast<TimeFrom>(e->time_from)};
  }
  Stamp stamp;
  stamp.sequence = header.sequence - run.first_sequence;
  stamp.publisher = run.publisher;
  if (run.source_time) {
    stamp.time_ns = header.time_ns;
    stamp.time_from = TimeFrom::source;
  } else if (header.time_ns != 0) {
    stamp.time_ns = header.time_ns;
    stamp.time_from = TimeFrom::publisher;
  } else {
    stamp.time_ns = run.taken();
  }
  return stamp;
}

EventView view_of(const engine::Run& run, std::size_t i, const Stamp& stamp) noexcept {
  const auto& from = run.source->options();
  return {from.name, *static_cast<const Schema*>(from.schema), run.payload(i), stamp};
}

}  // namespace ringmain::detail
