#include "adapters/sources/cuda/cuda_attachment.hpp"

#include <utility>

#include "bus/core/erased.hpp"

namespace ringmain::cuda {
namespace {

/// An Error's message, or "".
template <class E>
std::string hold(Bus& bus, ChannelHeld<E>& held) {
  auto core = ringmain::detail::Erased::channel(bus, schema<E>());
  if (!core) return core.error().message;
  held.core = core.value();
  held.channel = &bus.channel<E>();
  return {};
}

PublisherOptions lanes_of(const Options& options) {
  PublisherOptions lanes;
  lanes.capacity_events = options.lane_events;
  lanes.lane = LaneKind::ring;
  lanes.realtime = !options.lossless;
  if (options.lossless) lanes.overflow = Overflow::block;
  return lanes;
}

template <class E>
CallKind kind_of() {
  constexpr std::string_view kChannels[] = {"",
                                            "cuda.event_creation",
                                            "cuda.event_deletion",
                                            "cuda.event_record",
                                            "cuda.event_wait",
                                            "cuda.memory_allocation",
                                            "cuda.memory_deallocation",
                                            "cuda.stream_creation",
                                            "cuda.device_synchronization",
                                            "cuda.stream_synchronization",
                                            "cuda.event_synchronization",
                                            "cuda.stream_deletion",
                                            "cuda.context",
                                            "cuda.capture"};
  static_assert(std::size(kChannels) == kKinds);
  constexpr std::string_view kName = describe(EventOf<E>{}).name;
  for (std::size_t i = 1; i < kKinds; ++i) {
    if (kChannels[i] == kName) return static_cast<CallKind>(i);
  }
  return CallKind::none;
}

}  // namespace

Result<std::shared_ptr<Attachment>> Attachment::make(Bus& bus, const Options& options,
                                                     const Cupti& cupti, Handles& handles) {
  auto made = std::make_shared<Attachment>(bus, options, cupti, handles);
  made->bus_name = ringmain::detail::Erased::core(bus).engine().options().name;
  std::string conflict;
  std::apply(
      [&](auto&... held) {
        // The first that is wrong ends it.
        (void)((conflict = hold(bus, held), conflict.empty()) && ...);
      },
      made->channels);
  if (!conflict.empty()) return Error{Error::Code::conflict, std::move(conflict)};

  const PublisherOptions lanes = lanes_of(options);
  const auto set_lanes = [&]<class E>(ChannelHeld<E>& held) {
    if (kind_of<E>() == CallKind::none) return;
    const auto set = held.channel->set_thread_lanes(lanes);
    if (!set && made->warning.empty()) made->warning = set.error().message;
  };
  std::apply([&](auto&... held) { (set_lanes(held), ...); }, made->channels);

  auto& notices = made->channel<SourceNotice>();
  made->words = notices.publisher();
  auto last = notices.publisher({.capacity_events = 2, .lane = LaneKind::ring, .realtime = true});
  if (last) made->last_words = std::move(last).value();
  for (std::size_t i = 0; i < call_rows().size(); ++i) made->names[i] = Name(call_rows()[i].name);
  made->unkept_before = handles.unkept();
  return made;
}

Kinds Attachment::heard() const noexcept {
  Kinds heard = 0;
  const auto ask = [&heard]<class E>(const ChannelHeld<E>& held) {
    if (held.channel->wanted()) heard |= bit_of(kind_of<E>());
  };
  std::apply([&](const auto&... held) { (ask(held), ...); }, channels);
  return heard & ~bit_of(CallKind::none);
}

}  // namespace ringmain::cuda
