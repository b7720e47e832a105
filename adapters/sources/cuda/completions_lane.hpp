// Where do a thread's tickets on one stream lie until they end? In a ring that this thread fills
// and the poller empties, beside a word that the stream raises.
//
// A lane is of one thread, so that its tickets are on the stream in the order of their numbers:
// when the word has a number, all tickets up to it are reached. A number is used once, also if the
// driver refused it, as the refused write might come all the same. What is sealed gets no ticket
// any more, and is not taken away while the driver is called for it: its thread says that it calls,
// then looks whether it is sealed, and who seals it looks whether it calls (call_flag.hpp). Model:
// tests/model/completions.pml.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/system/cache_line.hpp"
#include "engine/system/call_flag.hpp"

namespace ringmain::cuda {

/// What a stream writes to: a line of its own in memory that outlives the context.
struct alignas(64) Word {
  std::atomic<std::uint64_t> reached{0};
};
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 &&
              std::atomic<std::uint64_t>::is_always_lock_free);

struct Slot {
  std::uint64_t value = 0;  // what the word has once the ticket is reached
  std::uint64_t tag = 0;
  std::int64_t armed_ns = 0;
  void* event = nullptr;  // Strategy::event_queries: this slot's for as long as the lane lives
  Word* word = nullptr;   // Strategy::host_functions
};
static_assert(sizeof(Slot) == 40);  // as CompletionsOptions::lane_tickets says

struct alignas(engine::kLineBytes) Lane {
  enum class Owner : std::uint8_t { none, thread, left };  // left: its thread has ended

  Lane(std::uint32_t own_number, std::uint32_t tickets, Word* own_word, std::uint64_t device_word)
      : number(own_number),
        mask(tickets - 1),
        word(own_word),
        device(device_word),
        slots(std::make_unique<Slot[]>(tickets)) {}

  // --- its thread ---

  /// Is there room for one ticket more?
  [[nodiscard]] bool room() noexcept {
    if (armed() - tail_seen <= mask) return true;
    tail_seen = tail;
    return armed() - tail_seen <= mask;
  }
  /// From here until commit() or give_up() the driver is called. False: the lane is sealed.
  [[nodiscard]] bool begin() noexcept {
    in_driver.enter();
    if ((head & kSealed) == 0) [[likely]]
      return true;
    leave();
    return false;
  }
  /// After begin(): the next ticket's. Its number is used up.
  [[nodiscard]] Slot& next(std::uint64_t tag, std::int64_t now_ns) noexcept {
    Slot& slot = slots[armed() & mask];
    slot.value = ++value;
    slot.tag = tag;
    slot.armed_ns = now_ns;
    return slot;
  }
  /// The ticket is the poller's from here on. False: the lane was sealed meanwhile.
  [[nodiscard]] bool commit() noexcept {
    std::uint64_t now = head & ~kSealed;
    if (!head.compare_exchange_strong(now, now + kOne)) [[unlikely]] {
      give_up();
      return false;
    }
    leave();
    return true;
  }
  /// Nothing was asked of the driver, or what was asked for is the poller's.
  void leave() noexcept { in_driver.leave(); }
  /// The driver refused, or the lane was sealed: what was asked for may come all the same.
  void give_up() noexcept {
    burnt = true;
    leave();
  }
  /// May it be given to another stream? Not after a refusal: that write may come late.
  [[nodiscard]] bool reusable() const noexcept {
    return !burnt && (head & kSealed) == 0 && tail == armed();
  }
  [[nodiscard]] std::uint64_t ticket(std::uint64_t of_value) const noexcept {
    return std::uint64_t{number + 1} << kValueBits | of_value;
  }

  // --- the poller, and who ends ---

  /// CallFlag::closed() comes after it, before may_come().
  void seal() noexcept { head |= kSealed; }
  [[nodiscard]] std::uint64_t armed() const noexcept { return head / kOne; }
  /// After that: can a call of the driver's for this lane still come, or what it
  /// asked for?
  [[nodiscard]] bool may_come() const noexcept { return in_driver.inside() || burnt; }

  static constexpr std::uint64_t kSealed = 1, kOne = 2;
  static constexpr unsigned kValueBits = 44;

  const std::uint32_t number;
  const std::uint32_t mask;
  Word* const word;
  const std::uint64_t device;  // the word's address there
  const std::unique_ptr<Slot[]> slots;
  void* stream = nullptr;  // written while nothing is armed
  std::int32_t thread = 0;
  std::uint64_t value = 0, tail_seen = 0;  // of its thread alone
  engine::CallFlag in_driver;              // its thread calls the driver, or is about to
  std::atomic<bool> burnt{false};          // a call of the driver's has failed
  std::atomic<Owner> owner{Owner::none};
  alignas(engine::kLineBytes) std::atomic<std::uint64_t> head{0};  // 2 × tickets, + kSealed
  alignas(engine::kLineBytes) std::atomic<std::uint64_t> tail{0};  // tickets that have ended
  std::uint32_t errors = 0;  // of the poller: answers for the ticket at the tail, one after another
};

}  // namespace ringmain::cuda
