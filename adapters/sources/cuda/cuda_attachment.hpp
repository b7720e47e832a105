// What does a callback need to know of the bus that it publishes on? All of it is found before the
// first call is heard, so that a callback looks nothing up, takes no lock and allocates nothing.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "engine/channel/channel_core.hpp"
#include "engine/system/cache_line.hpp"
#include "engine/system/fork.hpp"

#include "bus/bus.hpp"
#include "bus/core/bus_core.hpp"

#include "events/cuda.hpp"
#include "events/cuda_lifetimes.hpp"
#include "events/cuda_source.hpp"
#include "events/cuda_wrapped.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/cuda/cuda_contexts.hpp"
#include "adapters/sources/cuda/cuda_guard.hpp"
#include "adapters/sources/cuda/cuda_handles.hpp"
#include "adapters/sources/cuda/cuda_options.hpp"
#include "adapters/sources/cuda/cupti_library.hpp"

namespace ringmain::cuda {

constexpr std::size_t kKinds = static_cast<std::size_t>(CallKind::capture) + 1;
/// A bit for each CallKind.
using Kinds = std::uint32_t;
constexpr Kinds bit_of(CallKind kind) noexcept {
  return Kinds{1} << static_cast<unsigned>(kind);
}

/// What became of the calls, counted by all threads; each thread mostly writes a line of its own.
class Tally {
 public:
  enum What : std::uint8_t { published, refused, suppressed };
  void add(What what) noexcept { ++parts_[run::this_tid() % kParts].of[what]; }
  [[nodiscard]] std::uint64_t sum(What what) const noexcept {
    std::uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.of[what];
    return sum;
  }

 private:
  static constexpr std::size_t kParts = 16;
  struct alignas(engine::kLineBytes) Part {
    std::atomic<std::uint64_t> of[3]{};
  };
  std::array<Part, kParts> parts_{};
};

/// A source's attachment to a bus. Callbacks use it between Presence::enter() and leave(), so it is
/// freed only after nobody was inside.
struct Attachment : engine::Born {
  Attachment(Bus& to, const Options& asked, const Cupti& found, Handles& kept)
      : bus(to), options(asked), cupti(found), handles(kept) {}

  /// Finds the channels, says what lanes their threads get, and interns the calls' names. The Error
  /// says which channel has another event. Throws std::bad_alloc.
  static Result<std::shared_ptr<Attachment>> make(Bus& bus, const Options& options,
                                                  const Cupti& cupti, Handles& handles);

  template <class E>
  [[nodiscard]] Channel<E>& channel() const noexcept {
    return *std::get<run::ChannelHeld<E>>(channels).channel;
  }
  [[nodiscard]] Hearer hearer() const noexcept { return {switches, number}; }
  /// As Bus::on_interest() of `cuda.source`, also while the bus ends and when it is gone: then
  /// nothing is told. `again`: about each second, too. Throws std::bad_alloc.
  [[nodiscard]] Subscription on_interest_in_source(std::function<void(Interest)> tell,
                                                   bool again = false) const;
  /// The kinds that somebody listens to.
  [[nodiscard]] Kinds heard() const noexcept;
  /// Is somebody asked, or told, of calls through the wrapper?
  [[nodiscard]] bool asked() const noexcept {
    return channel<CallBegin>().wanted() || channel<CallRefused>().wanted();
  }

  /// In the order of CallKind from 1 on; then those of no one kind.
  using Channels =
      std::tuple<run::ChannelHeld<EventCreation>, run::ChannelHeld<EventDeletion>,
                 run::ChannelHeld<EventRecord>, run::ChannelHeld<EventWait>,
                 run::ChannelHeld<MemoryAllocation>, run::ChannelHeld<MemoryDeallocation>,
                 run::ChannelHeld<StreamCreation>, run::ChannelHeld<DeviceSynchronization>,
                 run::ChannelHeld<StreamSynchronization>, run::ChannelHeld<EventSynchronization>,
                 run::ChannelHeld<StreamDeletion>, run::ChannelHeld<ContextEvent>,
                 run::ChannelHeld<Capture>, run::ChannelHeld<SourceNotice>,
                 run::ChannelHeld<CallBegin>, run::ChannelHeld<CallRefused>>;

  Bus& bus;  // only to be used while it lives; callbacks do not
  engine::Ref<ringmain::detail::BusCore> bus_core;  // lives as long as this does
  const Options options;
  const Cupti& cupti;
  Handles& handles;
  std::string bus_name;
  std::string warning;  // what is not as asked, in one sentence; mostly empty
  Channels channels;
  std::array<Name, call_rows().size()> names{};
  Switches switches;
  Contexts contexts;
  Tally tally;
  std::uint32_t number =
      0;  // of the process's attachments, from 1 on; written before the first call
  /// Grows at each subscription to CUPTI: a callback of an earlier one is not believed, and none
  /// once it has left.
  std::atomic<std::uint32_t> epoch{0};
  static constexpr std::uint32_t kLeft = ~std::uint32_t{0};
  std::atomic<SourceState> state{SourceState::unavailable};
  std::atomic<bool> ended{false};  // detach() was called; what is left to do may come later
  std::uint64_t unkept_before = 0;
  /// What is said of it in order, by the thread whose turn it is; and that it is lost, by the one
  /// that finds out, which may be in a callback.
  Publisher<SourceNotice> words, last_words;
};

}  // namespace ringmain::cuda
