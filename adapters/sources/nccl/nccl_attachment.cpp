#include "adapters/sources/nccl/nccl_attachment.hpp"

#include <utility>

#include "bus/core/door_core.hpp"
#include "bus/core/erased.hpp"

#include "events/terms/collective_names.hpp"

namespace ringmain::nccl {
namespace {

PublisherOptions lanes_of(const Options& options) {
  PublisherOptions lanes;
  lanes.capacity_events = options.lane_events;
  lanes.lane = LaneKind::ring;
  lanes.realtime = true;
  return lanes;
}

}  // namespace

Result<std::shared_ptr<Attachment>> Attachment::make(Bus& bus, const Options& options) {
  auto made = std::make_shared<Attachment>(bus, options);
  made->bus_core = engine::Ref<ringmain::detail::BusCore>(&ringmain::detail::Erased::core(bus));
  made->bus_name = made->bus_core->engine().options().name;
  if (auto conflict = run::hold_channels(bus, made->channels)) return std::move(*conflict);
  auto ledger = collective::Ledger::of(bus);
  if (!ledger) return ledger.error();
  made->ledger = std::move(ledger).value();

  const PublisherOptions lanes = lanes_of(options);
  const auto give_lanes = [&](auto& channel) {
    const auto set = channel.set_thread_lanes(lanes);
    if (!set && made->warning.empty()) made->warning = set.error().message;
  };
  std::apply([&](auto&... held) { (give_lanes(*held.channel), ...); }, made->channels);
  // Other sources may have said what those get.
  (void)bus.channel<collective::Issued>().set_thread_lanes(lanes);
  (void)bus.channel<collective::Started>().set_thread_lanes(lanes);
  (void)bus.channel<collective::Completed>().set_thread_lanes(lanes);
  (void)bus.channel<collective::Failed>().set_thread_lanes(lanes);

  made->backend = Name("nccl");
  made->source = Name("nccl");
  made->cancelled = Name("its NCCL communicator was finalized before its end was seen");
  made->unknown = Name("NCCL told nothing of its end, and too many operations came since");
  made->detached = Name("the source of NCCL's events was detached before its end was seen");
  return made;
}

Subscription Attachment::look_again(std::function<void(Interest)> tell) const {
  return ringmain::detail::Erased::on_interest(
      *bus_core, *std::get<run::ChannelHeld<PluginNotice>>(channels).core, std::move(tell), true);
}

bool Attachment::ends_heard() const noexcept {
  return channel<Evidence>().wanted() || channel<Stalled>().wanted() || ledger->hooked_or_heard();
}

bool Attachment::door_asks() const noexcept {
  return options.door != DoorAsks::never && ringmain::detail::has_door();
}

namespace {
/// With what each needs of what it belongs to.
constexpr Types with_parents(Types types) noexcept {
  using enum abi::Type;
  if ((types & kNetPlugin) != 0) types |= kProxyStep;
  if ((types & kProxyStep) != 0) types |= kProxyOp;
  if ((types & kKernelPhase) != 0) types |= kKernelCh;
  if ((types & (kProxyOp | kKernelCh)) != 0) types |= kColl | kP2p;
  if ((types & (kCeSync | kCeBatch)) != 0) types |= kCeColl;
  if ((types & (kColl | kCeColl)) != 0) types |= kCollApi;
  if ((types & kP2p) != 0) types |= kP2pApi;
  return types;
}
}  // namespace

Types Attachment::needed() const noexcept {
  using enum abi::Type;
  Types types = 0;
  const auto heard = [&]<class E>(std::type_identity<E>, Types of) {
    if (channel<E>().wanted()) types |= of;
  };
  heard(std::type_identity<Api>{}, kGroupApi | kCollApi | kP2pApi);
  heard(std::type_identity<Operation>{}, kColl | kP2p);
  heard(std::type_identity<Group>{}, kGroup);
  heard(std::type_identity<Launch>{}, kKernelLaunch);
  heard(std::type_identity<ProxyOp>{}, kProxyOp);
  heard(std::type_identity<ProxyStep>{}, kProxyStep);
  heard(std::type_identity<ProxyControl>{}, kProxyCtrl);
  heard(std::type_identity<KernelChannel>{}, kKernelCh);
  heard(std::type_identity<KernelPhase>{}, kKernelPhase);
  heard(std::type_identity<CopyEngine>{}, kCeColl | kCeSync | kCeBatch);
  heard(std::type_identity<Net>{}, kNetPlugin);
  heard(std::type_identity<Stalled>{}, kProxyStep);
  if (ends_heard()) types |= kColl | kP2p | kGroup | kProxyOp;
  if (door_asks()) {
    types |= kColl | kP2p | kGroup | kProxyOp;
    if (options.door != DoorAsks::operations) types |= kProxyStep;
    if (options.door == DoorAsks::all) types |= kKernelCh;
  }
  types = with_parents(types);
  if (!options.proxy_steps) types &= ~Types{kProxyStep | kNetPlugin};
  const bool no_room = no_kernel_channels.load();
  if (options.kernel_channels == KernelChannels::never ||
      (no_room && options.kernel_channels != KernelChannels::always))
    types &= ~Types{kKernelCh | kKernelPhase};
  return types;
}

}  // namespace ringmain::nccl
