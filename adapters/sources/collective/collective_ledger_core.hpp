// Of what does a ledger consist? Channels, what is open, and who has asked to hear of ends.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "engine/system/clock.hpp"
#include "engine/system/fork.hpp"
#include "engine/system/numbering.hpp"
#include "engine/system/open_table.hpp"
#include "engine/system/ref.hpp"

#include "bus/core/bus_core.hpp"
#include "bus/hooks.hpp"
#include "bus/origin.hpp"

#include "events/collective.hpp"
#include "events/collective_life.hpp"
#include "events/collective_shapes.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/collective_hook.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"

namespace ringmain::collective {

namespace detail {
class CommunicatorGate;

/// By what a communicator is found.
struct Entered {
  Name group;
  std::int32_t rank = kNoRank;
  std::weak_ptr<CommunicatorGate> gate{};
};

/// Two fields of an event in one word. They are put together in registers: a load of a word that
/// was stored in two halves waits for both.
template <class A, class B = A>
class Two {
 public:
  Two() = default;
  constexpr Two(A first, B second) noexcept
      : word_(std::bit_cast<std::uint32_t>(first) |
              std::uint64_t{std::bit_cast<std::uint32_t>(second)} << 32) {}
  [[nodiscard]] constexpr A first() const noexcept {
    return std::bit_cast<A>(static_cast<std::uint32_t>(word_));
  }
  [[nodiscard]] constexpr B second() const noexcept {
    return std::bit_cast<B>(static_cast<std::uint32_t>(word_ >> 32));
  }

 private:
  std::uint64_t word_ = 0;
};

/// What issue() was told, for those who say later what became of it.
struct Facts {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t issued_ns = 0;
  Two<Name> op_group;
  Two<Name> dtype_backend;
  Two<Name, std::uint32_t> source_communicator;  // its number; 0: it was issued through none
  Two<std::int32_t> peer_rank;
  Two<std::int32_t> size_device;
  std::int64_t timeout_ns = 0;  // the operation's own, not its communicator's; 0: none

  [[nodiscard]] Name op() const noexcept { return op_group.first(); }
  [[nodiscard]] Name group() const noexcept { return op_group.second(); }
  [[nodiscard]] std::uint32_t communicator() const noexcept { return source_communicator.second(); }
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
  template <class E>
  [[nodiscard]] const engine::ChannelLine* line() const noexcept {
    return &std::get<run::ChannelHeld<E>>(channels).core->line;
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
  std::uint64_t issue(const Issued& what, std::uint32_t communicator) noexcept;
  /// The same for what `make(op_id)` builds in its place in the queue; `facts` are of it.
  /// Neither is copied: see OpenTable::Ended.
  template <class Make>
  std::uint64_t issue_made(detail::Facts& facts, const Make& make) noexcept {
    const std::uint64_t op_id = new_op_id();
    issued.add();
    const detail::Open::Room room = open.take_room(op_id);
    facts.issued_ns = engine::now_ns();
    // First: who hears of it may end it at once, in its call or in another thread.
    if (room) [[likely]]
      open.open(room, op_id, facts);
    (void)channel<Issued>().publish_with([&make, op_id]() noexcept { return make(op_id); });
    if (room) [[likely]] {
      open.tell(room, op_id);  // now a group's end may end it: it does not fail before it is issued
    } else {
      fail_without_room(op_id, facts);
    }
    return op_id;
  }
  void fail_without_room(std::uint64_t op_id, const detail::Facts& facts) noexcept;
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
  engine::Numbering issued;
  std::atomic<std::uint64_t> unknown{0}, late_words{0};

  std::atomic<bool> hooked{false};  // once a hook was registered
  std::atomic<std::uint32_t> communicators_made{0};
  std::mutex communicators_mutex;
  std::vector<detail::Entered> communicators;
};

}  // namespace ringmain::collective
