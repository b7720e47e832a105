// How does a program hear NCCL? It attaches a bus to the profiler plugin that NCCL has loaded.
//
//   auto source = nccl::Source::attach(bus);      // before or after communicators are made
//   auto heard = bus.channel<nccl::Operation>().subscribe([](const auto& operation) { … });
//
// NCCL loads the plugin where NCCL_PROFILER_PLUGIN names libnccl-profiler-ringmain.so before its
// first communicator is made. The program and the plugin share one libringmain_nccl: a process has
// one source. NCCL is asked only for what somebody listens to.
#pragma once
#include <cstdint>
#include <memory>

#include "../../../bus/bus.hpp"

#include "../../../events/nccl.hpp"
#include "../../../events/nccl_source.hpp"

#include "nccl_options.hpp"

namespace ringmain::nccl {

struct Attachment;

/// The process's NCCL events on a bus. Move-only; an empty one is detached.
///
/// What happens to it is said on the channel `nccl.plugin`. Threads: any; different threads may use
/// one Source at a time but for moving it. In a forked child it is inert.
class [[nodiscard]] Source {
 public:
  Source() noexcept = default;
  Source(Source&& other) noexcept = default;
  Source& operator=(Source&& other) noexcept;
  ~Source();

  /// Publishes on `bus` from now on, also of communicators that are open. What is listened to when
  /// this is called is asked of NCCL before it returns, later interest as soon as the bus has told
  /// of it (Bus::wait_told()). Each event's channel gives its threads lanes of
  /// Options::lane_events.
  ///
  /// Errors: `conflict`, the process has a source already, or a channel has another event;
  /// `refused`, inside a callback, in a forked child of a process that had a source, or a number in
  /// `options` is outside of its limits; each is also said on `nccl.plugin`, as `limited`. Throws
  /// std::bad_alloc.
  [[nodiscard]] static Result<Source> attach(Bus& bus, const Options& options = {});

  /// When it returns `done`, nothing is being published, and nothing will be; NCCL is asked for
  /// nothing more, but for what chained plugins ask. Spans that are open are counted to their end.
  /// Operations that this source has issued, or whose end it has promised, have failed, as
  /// `unknown`. Waits for events that are being published, and for their inline subscribers. Inside
  /// a callback it does not wait: `deferred`, and the bus's housekeeper does the rest within about
  /// a second. was_not_attached: an earlier call ended it.
  Detached detach() noexcept;

  /// For the end of the process, when a thread that is gone may hold any lock: as detach(), but no
  /// lock is waited for, and events that are being published until the limit only (`timeout`).
  Detached leave(nanoseconds limit) noexcept;

  /// Says on `nccl.stalled`, `asked`, each operation that is under way: where it is, and on whom it
  /// waits. How many. Operations are followed while somebody listens to `nccl.stalled`. Takes no
  /// lock; looks through a table of at most 65,536 places, once and once more for each 256 of them,
  /// so it is for hangs and people.
  std::uint32_t tell_stalled() noexcept;

  /// The same of the process's source, whoever attached it; 0 where there is none.
  static std::uint32_t tell_stalled_in_process() noexcept;

  /// Since the process began; also after detach(). Progress: lock-free.
  [[nodiscard]] static Counts counts() noexcept;

 private:
  explicit Source(std::shared_ptr<Attachment> attached) noexcept;
  std::shared_ptr<Attachment> attached_;
};

}  // namespace ringmain::nccl
