// What in a program's use of CUDA deserves a look? A synchronization inside a training step, events
// and streams that are never deleted, memory that grows from step to step, two streams that use one
// buffer without an order between them.
//
//   cuda::Alarms alarms(bus);                             // before cuda::Source::attach(bus)
//   …
//   alarms.finish();                                      // what was never deleted, and counts
//
// It hears CUDA's calls and the steps in one order, on a worker, and publishes `cuda.alarm`
// (events/cuda_alarm.hpp). What was lost on the way could make an alarm of nothing: before one of a
// leak, of growth or of a race is said, the accounts of its channels are looked at, and if anything
// was lost it begins anew from there. So it does when the source lent or lost CUPTI.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "../../../bus/bus.hpp"

#include "../../../events/cuda_alarm.hpp"

#include "cuda_alarm_options.hpp"

namespace ringmain::cuda {

/// One sentence without its end: "cudaDeviceSynchronize waits for the whole device in step 7,
/// thread 4711". Throws
/// std::bad_alloc.
[[nodiscard]] std::string sentence_of(const Alarm& alarm);

/// Move-only. The bus must outlive it. Threads: one at a time.
class Alarms {
 public:
  /// How often each was met, said or not, and what could not be judged.
  struct Figures {
    std::uint64_t synchronizations = 0;
    std::uint64_t leaked_events = 0;
    std::uint64_t leaked_streams = 0;
    std::uint64_t growths = 0;
    std::uint64_t races = 0;
    std::uint64_t unjudged_uses = 0;  // of buffers: on a stream that captures or may do so
    std::uint64_t unkept = 0;         // causes, handles and uses for which there was no room
    std::uint64_t restarts = 0;       // it began anew, because events had been lost or not heard
    std::uint64_t calls = 0;          // of CUDA's that were heard: none, and nothing was judged
    std::uint64_t steps = 0;  // that began: without one no synchronization and no growth is judged
    std::uint64_t without_handle = 0;  // events and streams made, as recordings tell them
  };
  /// Told of each alarm as it is published, by the thread that publishes it; it must not call this
  /// object. What it throws is counted as the subscriber's, and thrown by finish(), once all that
  /// is due is said.
  using Say = std::function<void(const Alarm&)>;

  static constexpr std::size_t kCausesMax = 1024;    // different ones that are said and counted
  static constexpr std::size_t kHandlesMax = 65536;  // live events, and as many streams

  /// As Bus::subscribe_ordered(), with its costs and what it throws; std::invalid_argument if the
  /// options have a fault(). Waits until a source that is attached tells what is needed, a second
  /// at most; not inside a callback, so make it outside. What was published before is not judged.
  explicit Alarms(Bus& bus, AlarmOptions options = {}, Say say = {});
  Alarms(Alarms&&) noexcept;
  Alarms& operator=(Alarms&&) noexcept;
  /// Says nothing more.
  ~Alarms();

  /// Hears what was published before, then nothing more; says what was made and never deleted, and
  /// the causes that came again, with how often. A second call does nothing. False: what was
  /// published was not heard within a second, or it was called inside a callback, which cannot
  /// wait for that; what is said then is of what was heard. Progress: blocking.
  bool finish();
  /// Threads: any.
  [[nodiscard]] Figures figures() const;
  /// The figures of its subscription. Threads: any.
  [[nodiscard]] SubscriberStats stats() const;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ringmain::cuda
