// Is any thread still inside? Cheap to enter, costly to wait for.
//
// Who calls us in its own threads and knows no barrier can still be left for good: say that no
// call is to do anything from now on, then wait for those that were inside. Each thread counts its
// entries in a record of its own by plain stores, and one compiler barrier orders them; the thread
// that waits makes all threads pass a full one (edges p.inside, p.awaited). Records are in a list
// that only grows; a record whose thread has ended is taken by another one. Model:
// tests/model/presence.pml.
#pragma once
#include <cstdint>

#include "atomics.hpp"
#include "cache_line.hpp"

namespace ringmain::engine {

class Deadline;
class PresenceRecord;  // of one thread in one Presence

/// A constinit object of static storage, or one that is never freed: its records are never given
/// up, and threads that end look at them.
///
/// The side that closes stores its word ("inactive"), then calls wait_until_none(). The side that
/// enters calls enter(), then reads the word. One of them sees the other.
class alignas(kLineBytes) Presence {
 public:
  constexpr Presence() noexcept = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  /// Says that this thread is inside. Entries nest, also those of signal handlers. False: it is not
  /// inside and must not go on, nor call leave(): there is no memory for the thread's record, or a
  /// signal handler interrupted the taking of it.
  ///
  /// A thread's first entry may allocate and looks through the records; so does each entry after
  /// the thread's own records are gone (destructors of thread-specific data that come after ours),
  /// whose record is for that entry alone. Progress: lock-free; wait-free from the second entry on.
  [[nodiscard]] bool enter() noexcept;
  /// Makes a system call only if a thread waits. Does nothing in a child that was forked inside.
  void leave() noexcept;
  /// Is this thread inside? In a forked child it is not, whatever its parent was.
  [[nodiscard]] bool inside() const noexcept;

  enum class Waited : std::uint8_t {
    none_inside,  // and what those did that were inside is seen
    timeout,
    itself  // the calling thread is inside, or interrupted in an entry: it would wait for itself
  };
  /// Waits for each thread that was inside at the call until it has left, at most `limit_ns`
  /// (negative: for ever; 0: does not sleep). A thread that comes and goes all the time is waited
  /// for once. Threads: any, several at once.
  [[nodiscard]] Waited wait_until_none(std::int64_t limit_ns) noexcept;

 private:
  friend struct ThreadRecords;

  bool enter_slowly() noexcept;
  void leave_slowly(PresenceRecord& record) noexcept;
  void tell(PresenceRecord& record) noexcept;
  PresenceRecord* take() noexcept;
  void count_waiting(int by) noexcept;
  bool has_left(PresenceRecord& record, const Deadline& deadline) noexcept;

  Atomic<PresenceRecord*> records_{nullptr};
  /// How many threads wait, and in the upper half in which process (Born): a fork leaves none.
  Atomic<std::uint64_t> awaited_{0};
  Atomic<std::uint32_t> key_{0};  // those sleep on it
};

}  // namespace ringmain::engine
