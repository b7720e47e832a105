#include "adapters/sources/cuda/cuda_hazards.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "events/steps/follower.hpp"

#include "adapters/sources/cuda/cuda_succeeded.hpp"
#include "adapters/sources/cuda/hazards/streams.hpp"
#include "adapters/sources/cuda/hazards/uses.hpp"

namespace ringmain::cuda {
namespace {

using hazards::Captures;
using hazards::Clock;
using hazards::Stream;
using hazards::Streams;

constexpr std::uint32_t kNonBlocking = 1;     // cudaStreamNonBlocking, CU_STREAM_NON_BLOCKING
constexpr std::uint32_t kRecordExternal = 1;  // cudaEventRecordExternal
constexpr std::size_t kThreadsMax = 1024;     // that are in a synchronization at once

/// What a record left in an event.
struct Recorded {
  Clock clock;
  std::uint64_t capture = 0;  // not 0: it was recorded into this capture
  std::uint64_t doubted = 0;  // not 0: when; perhaps into one that was not heard to begin
  bool by_graph = false;      // launches of a graph record it, and are not told with it
  bool deleted = false;       // unless CUDA refuses
};

/// What a thread waits for.
struct Pending {
  Clock clock;
  std::uint64_t begun = 0;
  std::optional<std::size_t> stream;
};

}  // namespace

struct Hazards::Core {
  Core(Tell tell_, Limits limits_) : tell(std::move(tell_)), limits(limits_) {}

  template <class Call>
  void hear(const Call& call) {
    streams.tick();
    streams.see_context(call.context, false);
  }
  std::optional<std::size_t> stream_of(std::uint64_t handle, std::uint32_t context,
                                       std::int32_t thread) {
    const auto found = streams.find(handle, context, thread);
    if (!found) give_up();
    return found;
  }
  /// There is no room. To go on as if it had just come loses races and invents none.
  void give_up() {
    ++figures.unkept;
    forget();
  }
  void forget() {
    ++figures.forgotten;
    streams = Streams(limits.streams);
    uses.clear();
    events.clear();
    waiting.clear();
  }

  Recorded* event_for_writing(std::uint64_t handle) {
    if (events.size() >= limits.events && events.count(handle) == 0) {
      for (auto event = events.begin(); event != events.end();)
        event = event->second.deleted ? events.erase(event) : std::next(event);
      if (events.size() >= limits.events) {
        give_up();
        return nullptr;
      }
    }
    Recorded& event = events[handle];
    event = {};
    return &event;
  }

  void begin_wait(std::int32_t thread, Pending pending) {
    if (waiting.size() >= kThreadsMax) waiting.clear();  // their ends are then taken for the most
    pending.begun = streams.now();
    waiting[thread] = std::move(pending);
  }
  /// Nothing: its begin was not heard, so it is not known what it waited for, and the most is
  /// assumed.
  std::optional<Pending> end_wait(std::int32_t thread, bool done) {
    const auto found = waiting.find(thread);
    std::optional<Pending> begun;
    if (found != waiting.end()) {
      begun = std::move(found->second);
      waiting.erase(found);
    }
    if (done) streams.host.join(begun ? begun->clock : streams.position(0));
    return begun;
  }

  /// Work on a stream that uses memory. Not judged where it may be captured and not done.
  void use(Use use, std::optional<std::size_t> place) {
    use.number = ++figures.uses;
    if (!place || streams[*place].captures != Captures::no) {
      ++figures.unjudged;
      return;
    }
    figures.unkept += uses.make_room(streams.host);
    streams.act(*place);
    Stream& stream = streams[*place];
    stream.seen.raise(*place, ++stream.uses);
    uses.put({use, *place, stream.uses},
             [&](const Use& earlier, std::size_t on, std::uint64_t count) {
               if (earlier.access == Access::read && use.access == Access::read) return;
               judge(earlier, use, stream.seen.at(on) < count);
             });
  }
  void judge(const Use& earlier, const Use& later, bool race) {
    ++(race ? figures.races : figures.ordered);
    Judgement verdict{earlier, later, std::max(earlier.address, later.address), 0, race};
    verdict.bytes = std::min(earlier.bytes - (verdict.address - earlier.address),
                             later.bytes - (verdict.address - later.address));
    tell(verdict);
  }
  template <class Call>
  [[nodiscard]] Use use_of(const Call& call, Name by, Access access) const {
    const step::Place in = steps.here();
    return {0,
            call.address,
            call.bytes,
            call.stream,
            in.inside ? static_cast<std::int64_t>(in.step) : -1,
            call.context,
            call.device,
            call.thread,
            by,
            access};
  }

  Tell tell;
  const Limits limits;
  Figures figures;
  step::Follower steps;
  Streams streams{limits.streams};
  hazards::Uses uses{limits.uses};
  std::unordered_map<std::uint64_t, Recorded> events;
  std::unordered_map<std::int32_t, Pending> waiting;  // by thread
};

Hazards::Hazards(Tell tell) : Hazards(std::move(tell), Limits()) {}
Hazards::Hazards(Tell tell, Limits limits)
    : core_(std::make_unique<Core>(std::move(tell), limits)) {
  if (!core_->tell) throw std::invalid_argument("a hazard checker has nobody to tell: give it one");
}
Hazards::Hazards(Hazards&&) noexcept = default;
Hazards& Hazards::operator=(Hazards&&) noexcept = default;
Hazards::~Hazards() = default;

void Hazards::forget() {
  core_->forget();
}
Hazards::Figures Hazards::figures() const noexcept {
  return core_->figures;
}

void Hazards::hear(const step::Step& edge) {
  core_->steps.follow(edge);
}

void Hazards::hear(const StreamCreation& call) {
  core_->hear(call);
  if (!succeeded(call)) return;
  const bool blocking = (call.flags & kNonBlocking) == 0;
  if (!core_->streams.make(call.stream, call.context, blocking)) core_->give_up();
}

void Hazards::hear(const StreamDeletion& call) {
  core_->hear(call);
  succeeded(call) ? core_->streams.end(call.stream) : core_->streams.restore(call.stream);
}

void Hazards::hear(const EventCreation& call) {
  core_->hear(call);
  if (succeeded(call)) (void)core_->event_for_writing(call.event);
}

void Hazards::hear(const EventDeletion& call) {
  core_->hear(call);
  const auto found = core_->events.find(call.event);
  if (found != core_->events.end()) found->second.deleted = succeeded(call);
}

void Hazards::hear(const EventRecord& call) {
  core_->hear(call);
  if (!succeeded(call) || call.stream == kNoStream) return;
  const auto place = core_->stream_of(call.stream, call.context, call.thread);
  if (!place) return;
  Recorded* const event = core_->event_for_writing(call.event);
  if (event == nullptr) return;
  const Stream& stream = core_->streams[*place];
  event->by_graph = (call.flags & kRecordExternal) != 0;
  if (stream.captures == Captures::yes) {
    event->capture = event->by_graph ? 0 : stream.capture;
    return;
  }
  core_->streams.act(*place);
  event->clock = stream.seen;
  event->doubted = stream.captures == Captures::maybe ? core_->streams.now() : 0;
}

void Hazards::hear(const EventWait& call) {
  core_->hear(call);
  if (!succeeded(call) || call.stream == kNoStream) return;
  const auto place = core_->stream_of(call.stream, call.context, call.thread);
  if (!place) return;
  Streams& streams = core_->streams;
  const auto found = core_->events.find(call.event);
  const Recorded* const event = found == core_->events.end() ? nullptr : &found->second;
  if (event != nullptr && event->capture != 0) {
    if (streams.is_capture(event->capture)) streams.join_capture(*place, event->capture);
    return;
  }
  if (streams[*place].captures == Captures::yes) return;
  streams.act(*place);
  Stream& stream = streams[*place];
  const bool doubted = event != nullptr && event->doubted > streams.cleared_at();
  if (doubted || (event == nullptr && !streams.clear_of_captures())) streams.doubt(*place);
  if (event == nullptr) return;  // recorded before all that was heard
  stream.seen.join(event->by_graph ? streams.position(0) : event->clock);
}

void Hazards::hear(const EventSynchronization& call) {
  core_->hear(call);
  if (call.phase != Phase::begin) {
    (void)core_->end_wait(call.thread, succeeded(call));
    return;
  }
  const auto found = core_->events.find(call.event);
  Clock waits_for;
  if (found != core_->events.end()) {
    waits_for =
        found->second.by_graph ? core_->streams.position(0) : std::as_const(found->second.clock);
  }
  core_->begin_wait(call.thread, {std::move(waits_for), 0, std::nullopt});
}

void Hazards::hear(const StreamSynchronization& call) {
  core_->hear(call);
  Streams& streams = core_->streams;
  if (call.phase == Phase::begin) {
    const auto place = core_->stream_of(call.stream, call.context, call.thread);
    if (!place) return;
    streams.act(*place);
    core_->begin_wait(call.thread, {streams[*place].seen, 0, place});
    return;
  }
  const auto begun = core_->end_wait(call.thread, succeeded(call));
  if (!begun || !begun->stream || !succeeded(call)) return;
  Stream& stream = streams[*begun->stream];  // which does not capture: CUDA would have refused
  if (stream.captures == Captures::maybe && stream.doubted < begun->begun)
    stream.captures = Captures::no;
}

void Hazards::hear(const DeviceSynchronization& call) {
  core_->hear(call);
  Streams& streams = core_->streams;
  if (call.phase == Phase::begin) {
    core_->begin_wait(call.thread, {streams.position(call.context), 0, std::nullopt});
    return;
  }
  const auto begun = core_->end_wait(call.thread, succeeded(call));
  if (begun && succeeded(call)) streams.clear_of_captures(call.context, begun->begun);
}

void Hazards::hear(const MemoryAllocation& call) {
  core_->hear(call);
  if (!succeeded(call)) return;
  switch (call.memory) {
    case MemoryClass::array:     // a handle and no address
    case MemoryClass::physical:  // the same
    case MemoryClass::host_registered:
      return;
    default:
      core_->uses.clear(call.address, call.bytes);
  }
  if (call.stream == kNoStream) return;
  core_->use(core_->use_of(call, call.api, Access::write),
             core_->stream_of(call.stream, call.context, call.thread));
}

void Hazards::hear(const MemoryDeallocation& call) {
  core_->hear(call);
  if (!succeeded(call)) return;
  if (call.stream != kNoStream) {
    Use whole = core_->use_of(call, call.api, Access::write);
    whole.bytes = std::max<std::uint64_t>(whole.bytes, 1);  // 0: of an allocation not heard
    core_->use(whole, core_->stream_of(call.stream, call.context, call.thread));
  } else if (call.memory != MemoryClass::array && call.memory != MemoryClass::physical) {
    core_->uses.clear(call.address, call.bytes);
  }
}

void Hazards::hear(const ContextEvent& call) {
  if (call.change == ContextChange::made) {
    core_->streams.tick();
    core_->streams.see_context(call.context, true);
  } else if (call.phase != Phase::failed) {
    core_->forget();  // its handles and its memory go without events of their own
  }
}

void Hazards::hear(const Capture& call) {
  core_->hear(call);
  if (call.step == CaptureStep::graph_launch) return;
  const auto place = core_->stream_of(call.stream, call.context, call.thread);
  if (!place) return;
  if (call.step == CaptureStep::end) core_->streams.end_capture(*place, succeeded(call));
  if (call.step == CaptureStep::begin && succeeded(call)) core_->streams.begin_capture(*place);
}

void Hazards::hear(const BufferUse& use) {
  core_->hear(use);
  core_->use(core_->use_of(use, use.by, use.access),
             core_->stream_of(use.stream, use.context, use.thread));
}

void Hazards::hear(const SourceNotice& notice) {
  if (notice.state != SourceState::unavailable) core_->forget();
}

}  // namespace ringmain::cuda
