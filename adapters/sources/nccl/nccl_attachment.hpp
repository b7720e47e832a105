// What does a callback need to know of the bus that it publishes on? All of it is found before the
// first call is heard, so that a callback looks nothing up, takes no lock and allocates nothing but
// its thread's lanes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "engine/channel/channel_core.hpp"
#include "engine/system/fork.hpp"

#include "bus/bus.hpp"
#include "bus/core/bus_core.hpp"
#include "bus/core/stall_requests.hpp"

#include "events/nccl.hpp"
#include "events/nccl_source.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/nccl/nccl_counters.hpp"
#include "adapters/sources/nccl/nccl_options.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

/// A bit for each abi::Type.
using Types = std::uint32_t;

/// Callbacks use it between Presence::enter() and leave(), so it is freed only after nobody was
/// inside.
struct Attachment : engine::Born {
  Attachment(Bus& to, const Options& asked) : bus(to), options(asked) {}

  /// Finds the channels and says what lanes their threads get. The Error says which channel has
  /// another event. Throws std::bad_alloc.
  static Result<std::shared_ptr<Attachment>> make(Bus& bus, const Options& options);

  template <class E>
  [[nodiscard]] Channel<E>& channel() const noexcept {
    return *std::get<run::ChannelHeld<E>>(channels).channel;
  }
  /// `make()` builds the event in its place, if somebody listens.
  template <class E, class F>
  void publish(Counters& counts, F make) const noexcept {
    const PublishResult done = channel<E>().publish_with(make);
    if (done == PublishCode::unheard) return;
    (done ? counts.published : counts.refused).add();
  }
  /// As Bus::on_interest() of `nccl.plugin`, also while the bus ends and when it is gone: then
  /// nothing is told. About each second, too. Throws std::bad_alloc.
  [[nodiscard]] Subscription look_again(std::function<void(Interest)> tell) const;
  /// The types that somebody listens to, and those that their events need.
  [[nodiscard]] Types needed() const noexcept;
  /// Does somebody wait for the ends of operations?
  [[nodiscard]] bool ends_heard() const noexcept;
  /// May somebody ask at the process's door what hangs?
  [[nodiscard]] bool door_asks() const noexcept;

  using Channels =
      std::tuple<run::ChannelHeld<Api>, run::ChannelHeld<Operation>, run::ChannelHeld<Group>,
                 run::ChannelHeld<Launch>, run::ChannelHeld<ProxyOp>, run::ChannelHeld<ProxyStep>,
                 run::ChannelHeld<ProxyControl>, run::ChannelHeld<KernelChannel>,
                 run::ChannelHeld<KernelPhase>, run::ChannelHeld<CopyEngine>, run::ChannelHeld<Net>,
                 run::ChannelHeld<Evidence>, run::ChannelHeld<Stalled>,
                 run::ChannelHeld<PluginNotice>>;

  Bus& bus;  // only to be used while it lives; callbacks do not
  engine::Ref<ringmain::detail::BusCore> bus_core;
  const Options options;
  std::string bus_name;
  std::string warning;  // what is not as asked, in one sentence; mostly empty
  Channels channels;
  std::shared_ptr<collective::Ledger> ledger;
  Name backend, source;
  Name cancelled, unknown, detached;            // reasons
  std::atomic<bool> follow{false};              // ends are waited for; as ends_heard() was
  std::atomic<bool> no_kernel_channels{false};  // there is no room for what they need
  /// Its end was asked for; what is left to do may come later. Who left has said the last words.
  enum Ended : std::uint8_t { kNotEnded, kDetached, kLeft };
  std::atomic<Ended> ended{kNotEnded};
  ringmain::detail::StallRequest stall_request;  // under the control's `turn_`
};

}  // namespace ringmain::nccl
