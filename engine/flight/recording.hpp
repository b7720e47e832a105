// Which threads record into a file, and how does that end while they publish?
//
// A publisher that finds its channel recorded says that it is inside (presence.hpp), looks again as
// what the channel is recorded, and leaves the record in its thread's ring of that pattern. Who
// ends a recording takes it off its channels and waits until nobody is inside; then the file may
// go. The ring is claimed at the thread's first record of a pattern and may be given to another
// thread after the thread's end. Model of the waiting: tests/model/presence.pml; of the rings:
// tests/model/flight_ring.pml. Edge z.recorded.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "../system/atomics.hpp"
#include "../system/presence.hpp"
#include "../system/ref.hpp"
#include "recorded.hpp"
#include "ring_file.hpp"

namespace ringmain::engine::flight {

/// This thread's place in all recordings.
struct ThreadPlace {
  enum : std::uint32_t { kNone = 0, kNever = ~0u };
  /// From 1 on; kNone: not yet, kNever: none is left, or no memory, or the thread has ended.
  // Initial-exec, trivially destructible: a thread can still look after its end.
  static thread_local constinit std::uint32_t mine __attribute__((tls_model("initial-exec")));
  static std::uint32_t take() noexcept;
  /// The thread ends: its rings are for the next ones of their patterns.
  static void end(void*);
};

/// Threads: any, but for what a function says.
class Recording final : public Counted {
 public:
  enum : std::size_t { kPatternsMax = 8, kThreadsMax = 1024 };

  /// `patterns`: kPatternsMax at most. Throws std::bad_alloc.
  Recording(std::unique_ptr<RingFile> file, const std::vector<std::string_view>& patterns);
  ~Recording() override;

  [[nodiscard]] RingFile& file() const noexcept { return *file_; }

  /// Before the channel shows it to publishers. Lives as long as this. Throws std::bad_alloc.
  [[nodiscard]] const Recorded* add_channel(std::string_view name, std::size_t pattern,
                                            std::uint64_t schema, const OperationRule& operation);
  /// A publisher in this thread takes a lane of that channel: what its records call it. May
  /// allocate, so that the thread's records need not.
  [[nodiscard]] std::uint16_t add_source(const Recorded& as, std::uint32_t publisher) noexcept;

  /// The event is about to be shown: what it says is issued is open from here on. So who hears of
  /// it may end it at once. Inside only. Async-signal-safe.
  void open_operation(const Recorded& as, const RecordHead& head, const void* payload) noexcept {
    if (as.operation.opens()) note_operation(as, head, payload);
  }
  /// Leaves a record in this thread's ring, and ends what the event says has ended. Inside only.
  /// Async-signal-safe but for the thread's first one, if it has no lane of its own. Progress:
  /// wait-free after the thread's first record of a pattern; no lock, no allocation, no system call
  /// then.
  void record(const Recorded& as, const RecordHead& head, const void* payload,
              std::size_t bytes) noexcept {
    if (as.operation.ends) [[unlikely]]
      note_operation(as, head, payload);
    if (RingWriter* const mine = ring(as.pattern)) [[likely]]
      mine->record_signal_safe(head, payload, bytes);
    else
      count_unrecorded();
  }
  /// An event was published and could not be recorded. Inside only.
  void count_unrecorded() noexcept { file_->count_unrecorded(); }

  /// Now and then: notes the clocks, and what could not be recorded.
  void note() noexcept;

  // --- being inside ---
  /// False, and counted: no memory for it, or a signal handler came in the middle of the thread's
  /// first entry.
  [[nodiscard]] static bool enter() noexcept {
    if (presence.enter()) [[likely]]
      return true;
    count_not_inside();
    return false;
  }
  static void leave() noexcept { presence.leave(); }
  /// Waits until each thread that was inside has left. The channels show it to nobody any more.
  static void wait_until_none_inside() noexcept { (void)presence.wait_until_none(-1); }

 private:
  enum : std::uintptr_t { kNone, kClaiming, kRefused };  // in place of a ring

  friend struct ThreadPlace;
  friend struct WhoIsInside;  // of tests that forget all memory
  [[nodiscard]] Atomic<std::uintptr_t>& ring_of(std::size_t thread, std::size_t pattern) noexcept {
    return rings_[pattern * kThreadsMax + thread];
  }
  static void count_not_inside() noexcept;
  void note_operation(const Recorded& as, const RecordHead& head, const void* payload) noexcept;
  /// This thread's; nullptr: it has none.
  [[nodiscard]] RingWriter* ring(std::uint32_t pattern) noexcept {
    if (ThreadPlace::mine - 1 < kThreadsMax) [[likely]] {
      const std::uintptr_t has = ring_of(ThreadPlace::mine - 1, pattern)
                                     .load(std::memory_order_relaxed);  // relaxed: our own
      if (has > kRefused) [[likely]]
        return reinterpret_cast<RingWriter*>(has);  // NOLINT(performance-no-int-to-ptr)
    }
    return claim(pattern);
  }
  /// The thread's first record of a pattern, or it gets no ring.
  [[nodiscard]] RingWriter* claim(std::uint32_t pattern) noexcept;
  void release_rings_of(std::size_t thread) noexcept;

  static Presence presence;

  const std::unique_ptr<RingFile> file_;
  std::vector<std::uint32_t> patterns_;  // their numbers in the file
  /// Of each pattern, for each thread's place: a RingWriter's address, or one of the above. Written
  /// by the thread that has the place.
  std::unique_ptr<Atomic<std::uintptr_t>[]> rings_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Recorded>> channels_;
  std::uint64_t not_inside_told_ = 0;
};

}  // namespace ringmain::engine::flight
