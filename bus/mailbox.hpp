// A queue between a channel and a reader that drains it when it likes: GUIs, Python, tests, poll
// loops.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "callback.hpp"
#include "coalesce.hpp"
#include "options.hpp"
#include "subscription.hpp"

namespace ringmain {

namespace detail {
class PullMailbox;
class BusCore;
/// Throw std::bad_alloc.
[[nodiscard]] PullMailbox* make_pull_mailbox(engine::ChannelCore& channel, SubscribeOptions options,
                                             KeyWriter key = {});
[[nodiscard]] PullMailbox* make_pull_mailbox(BusCore& bus, std::string_view pattern,
                                             SubscribeOptions options);
using ReadRunFn = void(void* reader, const engine::Run& run, std::size_t i);
std::size_t drain_mailbox(PullMailbox& box, ReadRunFn* read, void* reader, std::size_t max);
bool wait_mailbox(PullMailbox& box, nanoseconds limit) noexcept;
void interrupt_mailbox(PullMailbox& box) noexcept;
int mailbox_fd(PullMailbox& box) noexcept;
SubscriberStats mailbox_stats(const PullMailbox& box) noexcept;
void close_mailbox(PullMailbox* box) noexcept;

/// Memory for a run, which its caller owns: `bytes` bytes, aligned to 16. nullptr: there is none.
using RoomFn = std::byte*(void* maker, std::size_t bytes) noexcept;
/// Takes one run of at most `max` events into memory that `make_room` gives. The caller owns that
/// memory, so other languages may keep it. False: there is no event or no memory, or the mailbox is
/// being read. After true, finish_run_of() must follow; until then these events count as pending.
/// Not to be mixed with drain_mailbox().
[[nodiscard]] bool take_run_of(PullMailbox& box, RoomFn* make_room, void* maker, std::size_t max,
                               engine::Run& run);
void finish_run_of(PullMailbox& box) noexcept;
/// For each feeding channel, how many of its events have come in.
[[nodiscard]] std::vector<std::uint64_t> mailbox_marks(const PullMailbox& box);
/// Has all been read that had come in at those marks? Threads: any.
[[nodiscard]] bool mailbox_reached(const PullMailbox& box,
                                   const std::vector<std::uint64_t>& marks) noexcept;
}  // namespace detail

/// What Mailbox<E> and AnyMailbox share. Move-only. Threads: one at a time per mailbox. May outlive
/// the bus.
class MailboxBase {
 public:
  MailboxBase() noexcept = default;
  MailboxBase(MailboxBase&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  MailboxBase& operator=(MailboxBase&& other) noexcept {
    MailboxBase old(std::move(*this));  // detached at the closing brace
    box_ = std::exchange(other.box_, nullptr);
    return *this;
  }
  ~MailboxBase() { detail::close_mailbox(box_); }

  /// Waits until an event is there, at most `limit`. False: there is none; time ran out or the bus
  /// stopped. Progress: blocking.
  [[nodiscard]] bool wait_for(nanoseconds limit) noexcept {
    return box_ != nullptr && detail::wait_mailbox(*box_, limit);
  }
  /// Ends a wait_for() that is under way in another thread, or else the next one. The mailbox must
  /// not end meanwhile. Threads: any. Progress: wait-free.
  void rouse() noexcept {
    if (box_ != nullptr) detail::interrupt_mailbox(*box_);
  }
  /// A descriptor that polls readable while events are there; -1 if the system has none left. The
  /// mailbox keeps it; drain() clears it. Progress: wait-free.
  [[nodiscard]] int fd() noexcept { return box_ == nullptr ? -1 : detail::mailbox_fd(*box_); }
  /// Progress: blocking.
  [[nodiscard]] SubscriberStats stats() const noexcept {
    return box_ == nullptr ? SubscriberStats{} : detail::mailbox_stats(*box_);
  }
  /// Detaches; events that are still inside are dropped. Called outside callbacks, no event comes
  /// in after it returns. Called inside its own drain, it takes effect after the event that is
  /// being read. Progress: blocking.
  void reset() noexcept { detail::close_mailbox(std::exchange(box_, nullptr)); }
  /// Progress: wait-free.
  [[nodiscard]] bool attached() const noexcept { return box_ != nullptr; }

 protected:
  explicit MailboxBase(detail::PullMailbox* box) noexcept : box_(box) {}
  detail::PullMailbox* box_ = nullptr;
};

/// A mailbox of one channel.
template <Event E>
class [[nodiscard]] Mailbox : public MailboxBase {
 public:
  Mailbox() noexcept = default;
  /// Calls `read(event)` or `read(event, stamp)` for up to `max` events, in this thread. An
  /// exception of `read` leaves drain(); the events after that one stay. Progress: lock-free,
  /// but for what `read` does.
  template <EventCallback<E> F>
  std::size_t drain(F&& read, std::size_t max = 256) {
    if (box_ == nullptr) return 0;
    return detail::drain_mailbox(
        *box_,
        [](void* reader, const engine::Run& run, std::size_t i) {
          detail::call_one<E>(*static_cast<std::remove_reference_t<F>*>(reader), run, i);
        },
        const_cast<void*>(static_cast<const void*>(&read)), max);
  }

 private:
  template <Event>
  friend class Channel;
  explicit Mailbox(detail::PullMailbox* box) noexcept : MailboxBase(box) {}
};

/// A mailbox of all channels that match a pattern, present and future.
class [[nodiscard]] AnyMailbox : public MailboxBase {
 public:
  AnyMailbox() noexcept = default;
  /// Calls `read(const EventView&)` for up to `max` events, as Mailbox::drain().
  /// Progress: as there.
  template <std::invocable<const EventView&> F>
  std::size_t drain(F&& read, std::size_t max = 256) {
    if (box_ == nullptr) return 0;
    return detail::drain_mailbox(
        *box_,
        [](void* reader, const engine::Run& run, std::size_t i) {
          const Stamp stamp = detail::stamp_of(run, i);
          (*static_cast<std::remove_reference_t<F>*>(reader))(detail::view_of(run, i, stamp));
        },
        const_cast<void*>(static_cast<const void*>(&read)), max);
  }

 private:
  friend class Bus;
  explicit AnyMailbox(detail::PullMailbox* box) noexcept : MailboxBase(box) {}
};

}  // namespace ringmain
