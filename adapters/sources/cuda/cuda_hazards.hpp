// Do two streams use one buffer without an order between them? Vector clocks over streams say,
// from what is heard of a program: its events, waits and synchronizations, and the uses that it
// tells (events/cuda_use.hpp).
//
// A stream's clock holds, for each stream, how many of that one's uses come before what it does
// next. A record keeps the clock in the event; a wait joins it to the waiting stream's; what a
// synchronization waited for comes before everything that any thread puts on a stream afterwards.
// Of two uses of which one writes, the later one races unless its stream's clock holds the earlier
// one.
//
// What is not known makes more order, never less: a stream from before counts as one that
// synchronizes with the legacy stream, and what lies on a stream that may be capturing is left out.
// So a race that is told is one of the calls that were heard. Bounded: Limits.
// Source: Mattern, Virtual Time and Global States of Distributed Systems, 1989; which earlier uses
// must be kept: Flanagan and Freund, FastTrack, PLDI 2009.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "../../../bus/event.hpp"

#include "../../../events/cuda.hpp"
#include "../../../events/cuda_lifetimes.hpp"
#include "../../../events/cuda_source.hpp"
#include "../../../events/cuda_use.hpp"
#include "../../../events/step.hpp"

namespace ringmain::cuda {

/// One side of a pair: a use that was told, or a stream-ordered allocation or deallocation, each of
/// which writes the whole buffer.
struct Use {
  std::uint64_t number = 0;  // of all that were heard, from 1 on
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t step = -1;  // in which training step it was told; -1: in none
  std::uint32_t context = 0;
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;
  Name by;  // the kernel or operation; the call that allocates or frees
  Access access = Access::read;
};

/// Two uses of one buffer on two streams, of which at least one writes.
struct Judgement {
  Use earlier;  // as it was heard
  Use later;
  std::uint64_t address = 0;  // where both touch it, in one place that they share
  std::uint64_t bytes = 0;
  bool race = false;  // false: the earlier one is over before the later one begins
};

/// Threads: one at a time. Progress: allocates up to its limits; otherwise wait-free.
class Hazards {
 public:
  struct Limits {
    std::uint32_t streams = 256;   // that live, or that the host has not waited for
    std::uint32_t events = 16384;  // that live
    std::uint32_t uses = 65536;    // that are kept for comparison
  };
  struct Figures {
    std::uint64_t uses = 0;       // that were heard
    std::uint64_t unjudged = 0;   // of those: on a stream that captures or may do so, or of no room
    std::uint64_t races = 0;      // pairs
    std::uint64_t ordered = 0;    // pairs
    std::uint64_t unkept = 0;     // streams, events and earlier uses for which there was no room
    std::uint64_t forgotten = 0;  // how often forget() was called, or a context ended
  };
  /// Called for each pair, in hear(). Of one stream's reads, and of its writes, the latest of a
  /// place is compared: if an earlier one races, so does that.
  using Tell = std::function<void(const Judgement&)>;

  /// Throws std::bad_alloc; std::invalid_argument if `tell` is empty. `tell` must not call this
  /// object.
  explicit Hazards(Tell tell);
  Hazards(Tell tell, Limits limits);
  Hazards(Hazards&&) noexcept;
  Hazards& operator=(Hazards&&) noexcept;
  ~Hazards();

  /// Events in the order of Bus::subscribe_ordered(). Each throws std::bad_alloc.
  void hear(const step::Step& edge);
  void hear(const StreamCreation& call);
  void hear(const StreamDeletion& call);
  void hear(const EventCreation& call);
  void hear(const EventDeletion& call);
  void hear(const EventRecord& call);
  void hear(const EventWait& call);
  void hear(const EventSynchronization& call);
  void hear(const StreamSynchronization& call);
  void hear(const DeviceSynchronization& call);
  void hear(const MemoryAllocation& call);
  void hear(const MemoryDeallocation& call);
  void hear(const ContextEvent& call);
  void hear(const Capture& call);
  void hear(const BufferUse& use);
  /// Where it begins or ends, calls of other threads may have gone unheard: forget().
  void hear(const SourceNotice& notice);

  /// Goes on as if it heard from here on only: to be called when events may have been lost.
  void forget();
  [[nodiscard]] Figures figures() const noexcept;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::cuda
