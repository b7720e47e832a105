#include "adapters/sources/replay/replay_churn.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ringmain::replay {
namespace {

constexpr std::chrono::microseconds kBetweenStays{200};

}  // namespace

SubscriberChurn::SubscriberChurn(Bus& bus, const Recording& recording) : bus_(&bus) {
  std::array<std::size_t, kKinds> kinds;
  std::iota(kinds.begin(), kinds.end(), std::size_t{0});
  std::stable_sort(kinds.begin(), kinds.end(), [&](std::size_t a, std::size_t b) {
    return recording.events_of[a] > recording.events_of[b];
  });
  for (std::size_t i = 0; i < kChannels && recording.events_of[kinds[i]] > 0; ++i) {
    busiest_.push_back(kinds[i]);
  }
  if (!busiest_.empty()) thread_ = std::jthread([this](const std::stop_token& s) { run(s); });
}

ChurnFigures SubscriberChurn::figures() const noexcept {
  return {came_, went_, heard_, late_, kept_};
}

void SubscriberChurn::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  std::uint64_t number = 0;
  do {
    Place& place = places_[number % kAtATime];
    go(place);
    come(place, ++number);
    stopped.wait_for(lock, stop, kBetweenStays, [] { return false; });
  } while (!stop.stop_requested());
  for (Place& place : places_) go(place);
}

void SubscriberChurn::come(Place& place, std::uint64_t number) {
  auto held = std::make_shared<int>(0);
  place.captured = held;
  place.stay = number;
  const std::size_t kind = busiest_[number % busiest_.size()];
  for_each_kind([&]<class E>(std::size_t each) {
    if (each == kind) subscribe<E>(place, number, std::move(held));
  });
  ++came_;
}

template <Described E>
void SubscriberChurn::subscribe(Place& place, std::uint64_t number, std::shared_ptr<int> held) {
  const auto heard = [this, &place, number, held = std::move(held)](std::uint64_t events) {
    if (place.stay != number) ++late_;
    place.heard += events;
  };
  auto& channel = bus_->channel<E>();
  switch (number % 3) {
    case 0:
      place.said = channel.subscribe([heard](const E&) { heard(1); }, {.name = "visitor"});
      break;
    case 1:
      place.said = channel.subscribe_if([](const E&) { return true; },
                                        [heard](const E&) { heard(1); }, {.name = "visitor"});
      break;
    default:
      place.said = channel.subscribe_batch([heard](Batch<E> batch) { heard(batch.size()); },
                                           {.name = "visitor"});
  }
}

void SubscriberChurn::go(Place& place) {
  if (place.said.reset() == Detached::was_not_attached) return;
  place.stay = 0;  // from here on a call is late
  if (!place.captured.expired()) ++kept_;
  heard_ += std::exchange(place.heard, 0);
  ++went_;
}

}  // namespace ringmain::replay
