#include "adapters/sources/cuda/cuda_attachment.hpp"

#include <cstddef>
#include <tuple>
#include <utility>

#include "bus/core/erased.hpp"

namespace ringmain::cuda {
namespace {

PublisherOptions lanes_of(const Options& options) {
  PublisherOptions lanes;
  lanes.capacity_events = options.lane_events;
  lanes.lane = LaneKind::ring;
  lanes.realtime = !options.lossless;
  if (options.lossless) lanes.overflow = Overflow::block;
  return lanes;
}

static_assert(std::tuple_size_v<Attachment::Channels> == kKinds + 2);

/// Calls `what(channel, its kind)` for each kind.
template <class Channels, class What>
void for_each_kind(Channels& channels, What what) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (what(std::get<i>(channels), static_cast<CallKind>(i + 1)), ...);
  }
  (std::make_index_sequence<kKinds - 1>{});
}

}  // namespace

Result<std::shared_ptr<Attachment>> Attachment::make(Bus& bus, const Options& options,
                                                     const Cupti& cupti, Handles& handles) {
  auto made = std::make_shared<Attachment>(bus, options, cupti, handles);
  made->bus_core = engine::Ref<ringmain::detail::BusCore>(&ringmain::detail::Erased::core(bus));
  made->bus_name = made->bus_core->engine().options().name;
  if (auto conflict = run::hold_channels(bus, made->channels)) return std::move(*conflict);

  const PublisherOptions lanes = lanes_of(options);
  const auto give_lanes = [&](auto& channel) {
    const auto set = channel.set_thread_lanes(lanes);
    if (!set && made->warning.empty()) made->warning = set.error().message;
  };
  for_each_kind(made->channels, [&](auto& held, CallKind) { give_lanes(*held.channel); });
  give_lanes(made->channel<CallBegin>());
  give_lanes(made->channel<CallRefused>());

  auto& notices = made->channel<SourceNotice>();
  made->words = notices.publisher();
  auto last = notices.publisher({.capacity_events = 2, .lane = LaneKind::ring, .realtime = true});
  if (last) made->last_words = std::move(last).value();
  for (std::size_t i = 0; i < call_rows().size(); ++i) made->names[i] = Name(call_rows()[i].name);
  made->unkept_before = handles.unkept();
  return made;
}

Subscription Attachment::on_interest_in_source(std::function<void(Interest)> tell,
                                               bool again) const {
  return ringmain::detail::Erased::on_interest(
      *bus_core, *std::get<run::ChannelHeld<SourceNotice>>(channels).core, std::move(tell), again);
}

Kinds Attachment::heard() const noexcept {
  Kinds heard = 0;
  for_each_kind(channels, [&heard](const auto& held, CallKind kind) {
    if (held.channel->wanted()) heard |= bit_of(kind);
  });
  return heard;
}

}  // namespace ringmain::cuda
