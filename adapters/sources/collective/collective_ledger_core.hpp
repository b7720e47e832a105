// Of what does a ledger consist? Channels, what is open, and who has asked to hear of ends.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/system/fork.hpp"
#include "engine/system/open_table.hpp"
#include "engine/system/ref.hpp"

#include "bus/core/bus_core.hpp"
#include "bus/hooks.hpp"

#include "events/collective.hpp"
#include "events/collective_life.hpp"
#include "events/collective_shapes.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/sources/collective/collective_hook.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"

namespace ringmain::collective {

namespace detail {
class CommunicatorHold;

/// By what a communicator is found.
struct Entered {
  Name group;
  std::int32_t rank = kNoRank;
  std::weak_ptr<CommunicatorHold> hold{};
};

/// What issue() was told, for those who say later what became of it.
struct Facts {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t issued_ns = 0;
  Name op, group, dtype, backend, source;
  std::int32_t peer = kNoRank;
  std::int32_t rank = kNoRank;
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  std::uint32_t communicator = 0;  // its number; 0: it was issued through none
};
using Open = engine::OpenTable<Facts>;
static_assert(2 * Open::bytes_each() <= 256);  // there are two places for each that may be open

/// What the hooks for ends are shown; each asks whether it is about its communicator.
struct EndedArgs {
  CompletionHookArgs args;
  std::uint32_t communicator = 0;
};

/// A row of hooks that is made when the first one comes. Threads: any.
template <class Args>
class RowWhenAsked {
 public:
  RowWhenAsked() = default;
  RowWhenAsked(const RowWhenAsked&) = delete;
  RowWhenAsked& operator=(const RowWhenAsked&) = delete;
  ~RowWhenAsked() { delete row_.load(); }
  [[nodiscard]] bool any() const noexcept {
    const Hooks<Args>* const row = row_.load();
    return row != nullptr && row->any();
  }
  /// Only where any() was true.
  PublishResult call(const Args& args) noexcept { return row_.load()->call(args); }
  /// Throws std::bad_alloc.
  [[nodiscard]] Result<Hooks<Args>*> get(ringmain::detail::BusCore& bus, std::string name) {
    const std::lock_guard lock(mutex_);
    if (Hooks<Args>* const row = row_.load()) return row;
    auto made = Hooks<Args>::make(bus, std::move(name));
    if (!made) return made.error();
    row_ = new Hooks<Args>(std::move(made).value());
    return row_.load();
  }

 private:
  std::atomic<Hooks<Args>*> row_{nullptr};
  std::mutex mutex_;
};

}  // namespace detail

struct Ledger::Core : engine::Born {
  explicit Core(ringmain::detail::BusCore& bus) : bus_core(&bus), open(kOpenMax) {}

  template <class E>
  [[nodiscard]] Channel<E>& channel() const noexcept {
    return *std::get<run::ChannelHeld<E>>(channels).channel;
  }
  /// The bus has stopped: nothing is published any more.
  [[nodiscard]] bool stopped() const noexcept {
    return std::get<run::ChannelHeld<Group>>(channels).core->line.closing();
  }
  bool late() noexcept {
    ++late_words;
    return false;
  }
  /// As Ledger::heard(), once somebody has asked.
  [[nodiscard]] bool heard() const noexcept;
  /// As Ledger::issue(); `communicator`: through which.
  std::uint64_t issue(Issued what, std::uint32_t communicator) noexcept;
  /// As Ledger::end_group(), of one communicator.
  std::uint32_t end_communicator(std::uint32_t communicator, How how, Name reason) noexcept;
  bool end_as(std::uint64_t op_id, How how, Name reason) noexcept;
  void tell_hooks(std::uint64_t op_id, std::uint32_t communicator, const Completed* completed,
                  const Failed* failed) noexcept;

  engine::Ref<ringmain::detail::BusCore> bus_core;
  std::tuple<run::ChannelHeld<Issued>, run::ChannelHeld<Started>, run::ChannelHeld<Completed>,
             run::ChannelHeld<Failed>, run::ChannelHeld<Group>, run::ChannelHeld<Wait>,
             run::ChannelHeld<Abort>, run::ChannelHeld<Shapes>>
      channels;
  detail::Open open;
  detail::RowWhenAsked<detail::EndedArgs> ends;
  Name no_room{"more operations were open than the ledger of 4096 remembers"};
  std::atomic<std::uint64_t> issued{0}, unknown{0}, late_words{0};

  std::atomic<bool> hooked{false};  // once a hook was registered
  std::atomic<std::uint32_t> communicators_made{0};
  std::mutex communicators_mutex;
  std::vector<detail::Entered> communicators;
};

}  // namespace ringmain::collective
