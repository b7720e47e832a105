// Who is asked, or told, in the calling thread? The subscribers of a hook row, which belongs to an
// object of yours as a channel belongs to its bus.
//
// A row is a channel that nobody finds by name and that has no queues: its subscribers, the hooks,
// are all inline. So a call is over when they are, and the event may hold pointers that are good
// for that long only. Patterns, sinks and Bus::channel() never meet it. A bus holds 4,096 channels,
// mailboxes and rows at once.
#pragma once
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "channel.hpp"

namespace ringmain {

class Bus;

namespace detail {
class BusCore;
[[nodiscard]] BusCore& core_of(Bus& bus) noexcept;
/// As Hooks::make(): a core with one holder, which keeps the bus's core.
[[nodiscard]] Result<engine::ChannelCore*> make_hook_row(BusCore& bus, std::string name,
                                                         std::uint32_t payload_bytes);
void end_hook_row(engine::ChannelCore& row) noexcept;
/// On this thread's lane of the row.
[[nodiscard]] PublishResult call_hook_row(engine::ChannelCore& row, engine::BuildFn* build,
                                          const void* event) noexcept;
}  // namespace detail

/// A row of hooks. Move-only; an empty one has none and takes none. It may outlive its bus, and
/// then asks nobody.
///
/// Progress: blocking, for it takes a lock, unless a call says otherwise.
/// Threads: any() and call() from any thread, add() too; all of them also inside a hook. A row may
/// be destroyed, or moved from, inside a hook of itself, or while calls that show their event run
/// in other threads; no thread may begin a call, or add a hook, meanwhile or afterwards.
template <Event E>
class [[nodiscard]] Hooks {
 public:
  using event_type = E;
  Hooks() noexcept = default;
  /// `name` is shown in figures and messages; several rows may have the same. refused: the bus has
  /// stopped, or this process is a fork and the bus its parent's. no_memory.
  [[nodiscard]] static Result<Hooks> make(Bus& bus, std::string name) {
    return make(detail::core_of(bus), std::move(name));
  }
  /// For adapters, which may outlive the bus: then it is refused.
  [[nodiscard]] static Result<Hooks> make(detail::BusCore& bus, std::string name) {
    auto made = detail::make_hook_row(bus, std::move(name), sizeof(E));
    if (!made) return made.error();
    return Hooks(made.value());
  }
  Hooks(Hooks&& other) noexcept : row_(std::exchange(other.row_, nullptr)) {}
  Hooks& operator=(Hooks&& other) noexcept {
    Hooks(std::move(other)).swap(*this);  // the old row ends at this semicolon
    return *this;
  }
  /// No call starts afterwards; it waits for none that runs, and such a call goes on to the other
  /// hooks. Subscriptions may outlive it: their captures live until reset(), which answers as on a
  /// closed channel. Hooks that were released end here: their captures die in this thread, or, of
  /// one that is being called, after its call.
  ~Hooks() {
    if (row_ != nullptr) detail::end_hook_row(*row_);
  }
  void swap(Hooks& other) noexcept { std::swap(row_, other.row_); }

  /// Is there any? One load. Progress: wait-free.
  [[nodiscard]] bool any() const noexcept { return row_ != nullptr && row_->line.heard(); }
  /// Shows `event` to all hooks, by priority, then in order of registration. accepted: all were
  /// asked. vetoed: the first veto ended it, and `why` is its reason. unheard: there are no hooks.
  /// too_deep (8 calls are nested in this thread already), no_memory: nobody was asked. closed (the
  /// row or its bus has ended): nobody, or, if that came while the call ran, all, and none refused.
  /// forked: as closed. A hook that is added while a call runs is shown the next one.
  /// Progress: lock-free but for the hooks. A thread's first call on a row takes a lock, under
  /// which no code of a user runs, and allocates a lane without a queue.
  PublishResult call(const E& event) noexcept {
    if (row_ == nullptr) return {PublishCode::unheard, {}};
    const std::uint32_t seen = row_->line.look();
    if (!engine::ChannelLine::heard(seen)) return detail::unheard_on(seen);
    return detail::call_hook_row(
        *row_, [](void* to, void* from) noexcept { ::new (to) E(*static_cast<const E*>(from)); },
        &event);
  }
  /// As Channel::subscribe_inline(), which says what `see` may do, and when this throws. The handle
  /// is empty if the row is, and in a forked child. release() keeps the hook until the row ends.
  template <Observes<E> F>
  [[nodiscard]] Subscription add(F see, SubscribeOptions options = {}) {
    if (row_ == nullptr) return {};
    return detail::attach(*row_, detail::make_inline_subscriber<E>(std::move(see)),
                          std::move(options));
  }

 private:
  explicit Hooks(engine::ChannelCore* row) noexcept : row_(row) {}
  engine::ChannelCore* row_ = nullptr;  // one holder of it
};

}  // namespace ringmain
