// Who listens to a channel, and what the flight recorder asks of it: their part of
// channel_core.hpp.
#include <algorithm>
#include <mutex>

#include "engine/channel/channel_core.hpp"
#include "engine/flight/recording.hpp"

namespace ringmain::engine {

Listening ChannelCore::listening() const noexcept {
  const std::lock_guard lock(mutex_);
  return {static_cast<std::uint32_t>(list_.size()), static_cast<std::uint32_t>(inline_list_.size()),
          recordings(), list_.any_wants_time()};
}

void ChannelCore::name_source(Lane& lane, std::size_t place, const flight::Recorded& as,
                              bool of_this_thread) noexcept {
  const std::uint16_t source =
      of_this_thread
          ? as.in->add_source(
                as, lane.tenure.publisher.load(std::memory_order_relaxed))  // relaxed: ours
          : as.source;
  lane.sources[place].store(source, std::memory_order_relaxed);  // relaxed: z.recorded
}

/// Of a publisher in this thread.
void ChannelCore::name_sources(Lane& lane) noexcept {
  for (std::size_t place = 0; place < recorded_.size(); ++place) {
    const flight::Recorded* const as =
        recorded_[place].load(std::memory_order_relaxed);  // relaxed: changed under our lock
    if (as != nullptr) name_source(lane, place, *as, true);
  }
}

void ChannelCore::set_recorded(std::size_t place, const flight::Recorded* as) noexcept {
  if (inert()) return;
  const std::lock_guard lock(mutex_);
  if (as != nullptr) {  // which threads publish on these is not known here
    for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) name_source(lane(i), place, *as, false);
    if (as->operation.opens())
      opens_operations_.store(true, std::memory_order_relaxed);  // relaxed: a hint
  }
  recorded_[place].store(as, std::memory_order_release);  // z.recorded
  update_state();
}

void ChannelCore::count_unrecorded() const noexcept {
  if ((line.look() & ChannelLine::kRecorded) == 0 || inert() || !flight::Recording::enter()) return;
  for (std::size_t place = 0; place < recorded_.size(); ++place) {
    if (const flight::Recorded* const as = recorded(place)) as->in->count_unrecorded();
  }
  flight::Recording::leave();
}

std::uint32_t ChannelCore::recordings() const noexcept {
  return static_cast<std::uint32_t>(
      std::count_if(recorded_.begin(), recorded_.end(), [](const auto& one) {
        return one.load(std::memory_order_relaxed) != nullptr;  // relaxed: changed under our lock
      }));
}

}  // namespace ringmain::engine
