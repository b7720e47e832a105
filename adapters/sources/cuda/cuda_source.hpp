// How does a program hear its own CUDA calls? It attaches a bus to CUPTI, and goes away again.
//
//   auto source = cuda::Source::attach(bus);          // or an Error: one sentence with the remedy
//   auto records = bus.channel<cuda::EventRecord>().subscribe([](const auto& record) { … });
//   …
//   source.value().detach();                          // from here on no event comes
//
// Needs the driver and libcupti at run time only; both are looked for at attach(). Only those calls
// are asked of CUPTI that some channel's listeners need; nothing is asked while nobody listens.
// A process has one source: CUPTI serves one subscriber in most of its versions.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "../../../bus/bus.hpp"

#include "../../../events/cuda.hpp"
#include "../../../events/cuda_lifetimes.hpp"
#include "../../../events/cuda_source.hpp"
#include "../../../events/cuda_wrapped.hpp"

#include "cuda_options.hpp"

namespace ringmain::cuda {

/// Since attach(), all threads together. While calls go on each is right for some moment.
struct Counts {
  std::uint64_t published = 0;   // events that the bus accepted
  std::uint64_t refused = 0;     // events that it did not: full, no_memory, closed, vetoed
  std::uint64_t suppressed = 0;  // calls from within subscribers' callbacks
  std::uint64_t unkept = 0;      // handles that found no room: their generation reads 0

  friend bool operator==(const Counts&, const Counts&) = default;
};

struct Attachment;

/// The process's CUDA calls on a bus. Move-only; an empty one is `detached`.
///
/// What happens to it is said on the channel `cuda.source`, in order, before the call that causes
/// it returns. Threads: any; different threads may use one Source at a time but for moving it.
/// In a forked child it is inert: CUPTI is not called there, and no event is published.
class [[nodiscard]] Source {
 public:
  Source() noexcept = default;
  Source(Source&& other) noexcept = default;
  Source& operator=(Source&& other) noexcept;
  ~Source();

  /// Publishes on `bus` from now on: what its channels are listened to for when this is called is
  /// asked of CUPTI before it returns, later interest as soon as the bus has told of it
  /// (Bus::wait_told()). Each event's channel gives its threads lanes of Options::lane_events.
  ///
  /// Errors: `conflict`, CUPTI's place is taken (by whom, as far as it tells), the process has a
  /// source already, or a channel has another event; `not_found`, no driver or no CUPTI;
  /// `refused`, inside a callback, in a forked child of a process that had a source, a number in
  /// `options` is outside of its limits, or CUPTI refused; each is also said on `cuda.source`, as
  /// `unavailable`. Throws std::bad_alloc. A bus that stops or ends while it is attached refuses
  /// the events; detach all the same.
  [[nodiscard]] static Result<Source> attach(Bus& bus, const Options& options = {});

  /// When it returns `done`, no call is being published, none will be, and CUPTI's place is free,
  /// unless CUPTI refused to end the subscription, which `cuda.source` says (`result`).
  /// Waits for calls whose events are being published, and for their inline subscribers. Inside a
  /// subscriber of any bus or in a call under way it does not wait: `deferred`, no call that begins
  /// from then on is published, and the bus's housekeeper does the rest; so does a further detach()
  /// elsewhere, which waits for it. was_not_attached: an earlier call ended it.
  Detached detach() noexcept;

  /// For the end of the process, when a thread that is gone may hold any lock: as detach(), but no
  /// lock is waited for, CUPTI is not called and keeps its place taken, and calls whose events are
  /// being published are waited for until the limit only (`timeout`, and the last notice says so).
  Detached leave(nanoseconds limit) noexcept;

  /// Lets go of CUPTI, for torch.profiler for instance, until take_back(); `to` is said on
  /// `cuda.source` as the owner. False: it is not attached, or lent already. Errors (`refused`):
  /// Options::hold, inside a callback, or CUPTI does not let go: then it stays attached.
  [[nodiscard]] Result<bool> lend(std::string_view to);
  /// False: CUPTI is taken still, or was not lent. Errors (`refused`): as attach().
  [[nodiscard]] Result<bool> take_back();

  /// Also after detach(), when they are final. Progress: wait-free.
  [[nodiscard]] Counts counts() const noexcept;
  /// Outside of callbacks it asks CUPTI whether it still tells of calls: another tool may have
  /// ended it (cuptiFinalize), which nobody says. Call it now and then. Takes no lock that is held.
  [[nodiscard]] SourceState state() const noexcept;

  // The same for the source of this process, whoever attached it.

  /// Nothing: there is none, or `bus` is given and it is another's.
  [[nodiscard]] static std::optional<SourceState> state_in_process(const Bus* bus = nullptr);
  [[nodiscard]] static Result<bool> lend_in_process(std::string_view to);
  [[nodiscard]] static Result<bool> take_back_in_process();

 private:
  explicit Source(std::shared_ptr<Attachment> attached) noexcept;
  std::shared_ptr<Attachment> attached_;
};

}  // namespace ringmain::cuda
