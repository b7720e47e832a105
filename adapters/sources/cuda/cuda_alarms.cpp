#include "adapters/sources/cuda/cuda_alarms.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "events/cuda_source.hpp"
#include "events/steps/follower.hpp"

#include "adapters/sources/cuda/alarms/causes.hpp"
#include "adapters/sources/cuda/alarms/growth.hpp"
#include "adapters/sources/cuda/alarms/handles.hpp"
#include "adapters/sources/cuda/cuda_hazards.hpp"
#include "adapters/sources/cuda/cuda_succeeded.hpp"

namespace ringmain::cuda {
namespace {

using alarms::Left;
using alarms::Made;

constexpr auto kComing = std::chrono::seconds(1);

template <class E>
std::uint64_t lost_of(const Channel<E>& channel) {
  const ChannelStats stats = channel.stats();
  return stats.full + stats.no_memory + stats.too_deep + stats.evicted + stats.discarded;
}
template <class... E>
std::uint64_t lost_of(Bus& bus) {
  return (lost_of(bus.channel<E>()) + ...);
}
template <class... E>
struct Channels {
  template <class F>
  static Subscription subscribe(Bus& bus, F hear) {
    return bus.subscribe_ordered<E...>(std::move(hear), {.name = "cuda.alarms"});
  }
  static std::uint64_t lost(Bus& bus) { return lost_of<E...>(bus); }
};
using Calls = Channels<step::Step, SourceNotice, ContextEvent, EventCreation, EventDeletion,
                       StreamCreation, StreamDeletion, MemoryAllocation, MemoryDeallocation,
                       EventSynchronization, StreamSynchronization, DeviceSynchronization>;
using CallsAndUses = Channels<step::Step, SourceNotice, ContextEvent, EventCreation, EventDeletion,
                              StreamCreation, StreamDeletion, MemoryAllocation, MemoryDeallocation,
                              EventSynchronization, StreamSynchronization, DeviceSynchronization,
                              EventRecord, EventWait, Capture, BufferUse>;

}  // namespace

struct Alarms::Core {
  Core(Bus& bus_, AlarmOptions options_, Say say_)
      : bus(bus_), options(std::move(options_)), say(std::move(say_)) {}

  /// Whether anything was lost, or came out of its order, since the last call. Then all that rests
  /// on having heard everything begins anew.
  bool restarted() {
    const std::uint64_t now = lost_now();
    if (now <= lost) return false;
    lost = now;
    restart();
    return true;
  }
  [[nodiscard]] std::uint64_t lost_now() const {
    const SubscriberStats own = heard.attached() ? heard.stats() : last;
    const std::uint64_t disordered = own.order_gaps + own.order_late;
    return (options.races ? CallsAndUses::lost(bus) : Calls::lost(bus)) + own.dropped + disordered;
  }
  /// Hears nothing more. False: so it was before.
  bool leave() noexcept {
    Subscription left;
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(finished, true)) return false;
      last = heard.stats();
      left.swap(heard);
    }
    left.reset();  // without the lock, which a callback that is running wants
    return true;
  }
  void restart() {
    ++figures.restarts;
    events.clear();
    streams.clear();
    growth.clear();
    hazards.forget();
  }

  void raise(Alarm alarm, const alarms::Cause& cause) {
    alarm.count = 1;
    const auto met = causes.meet(cause, alarm);
    if (met == alarms::Causes::Met::no_room) ++figures.unkept;
    if (met == alarms::Causes::Met::first) due.push_back(alarm);
  }
  [[nodiscard]] std::int64_t step() const noexcept {
    const step::Place in = steps.here();
    return in.inside ? static_cast<std::int64_t>(in.step) : kNoStep;
  }

  template <class Call>
  void synchronize(const Call& call, std::uint64_t stream, std::uint64_t event) {
    const step::Place in = steps.here();
    if (!options.synchronization || call.phase != Phase::begin || !in.inside) return;
    const auto allows = [&](const std::string& name) {
      return name == call.api.view() || name == in.phase.view();
    };
    if (std::any_of(options.allowed.begin(), options.allowed.end(), allows)) return;
    ++figures.synchronizations;
    Alarm alarm;
    alarm.kind = AlarmKind::synchronization;
    alarm.api = call.api;
    alarm.phase = in.phase;
    alarm.step = static_cast<std::int64_t>(in.step);
    alarm.stream = stream;
    alarm.address = event;
    alarm.device = call.device;
    alarm.context = call.context;
    alarm.thread = call.thread;
    raise(alarm, {static_cast<std::uint64_t>(alarm.kind), call.api.id(), in.phase.id(),
                  static_cast<std::uint64_t>(call.thread), 0, 0});
  }

  template <class Call>
  void make(alarms::Handles& handles, const Call& call, std::uint64_t handle) {
    if (!options.leaks || !succeeded(call)) return;
    if (handle == 0 || handle == kNoStream) {
      ++figures.without_handle;
      return;
    }
    if (!handles.make(
            {handle, 0, step(), call.generation, call.context, call.device, call.thread, call.api}))
      ++figures.unkept;
  }
  template <class F>
  void tell_left(F is_over) {
    if (!options.leaks || restarted()) return;
    for (const Left& left : events.take_left(is_over)) {
      figures.leaked_events += left.count;
      tell_left(left, AlarmKind::leaked_events);
    }
    for (const Left& left : streams.take_left(is_over)) {
      figures.leaked_streams += left.count;
      tell_left(left, AlarmKind::leaked_streams);
    }
  }
  void tell_left(const Left& left, AlarmKind kind) {
    Alarm alarm;
    alarm.kind = kind;
    (kind == AlarmKind::leaked_events ? alarm.address : alarm.stream) = left.first.handle;
    alarm.generation = left.first.generation;
    alarm.api = left.first.api;
    alarm.step = left.first.step;
    alarm.device = left.first.device;
    alarm.context = left.first.context;
    alarm.thread = left.first.thread;
    alarm.count = left.count;
    due.push_back(alarm);
  }

  void end_step(const step::Step& edge) {
    const auto risen = growth.end_step(options);
    if (!options.growth || !risen || restarted()) return;
    ++figures.growths;
    Alarm alarm;
    alarm.kind = AlarmKind::growth;
    alarm.bytes = risen->bytes;
    alarm.step = static_cast<std::int64_t>(edge.step);
    alarm.api = risen->largest.api;
    alarm.thread = risen->largest.thread;
    alarm.device = risen->largest.device;
    alarm.context = risen->largest.context;
    alarm.address = risen->largest.address;
    raise(alarm, {static_cast<std::uint64_t>(alarm.kind), 0, 0, 0, 0, 0});
  }

  void raise_races() {
    if (races.empty()) return;
    const std::vector<Judgement> found = std::exchange(races, {});
    if (restarted()) return;
    for (const Judgement& race : found) raise_race(race.earlier, race.later, race);
  }
  void raise_race(const Use& earlier, const Use& later, const Judgement& verdict) {
    ++figures.races;
    Alarm alarm;
    alarm.kind = AlarmKind::race;
    alarm.address = verdict.address;
    alarm.bytes = verdict.bytes;
    alarm.stream = later.stream;
    alarm.other_stream = earlier.stream;
    alarm.step = later.step;
    alarm.other_step = earlier.step;
    alarm.thread = later.thread;
    alarm.other_thread = earlier.thread;
    alarm.api = later.by;
    alarm.other_api = earlier.by;
    alarm.device = later.device;
    alarm.context = later.context;
    raise(alarm, {static_cast<std::uint64_t>(alarm.kind), alarm.api.id(), alarm.other_api.id(),
                  alarm.stream, alarm.other_stream, 0});
  }

  template <class E>
  void hear(const E& event) {
    if (!started || finished) return;
    try {
      if constexpr (requires { hazards.hear(event); }) {
        if (options.races) hazards.hear(event);
      }
      if constexpr (requires { event.api; }) ++figures.calls;
      if constexpr (requires { look_at(event); }) look_at(event);
      raise_races();
    } catch (...) {  // no memory: half of it was heard
      races.clear();
      restart();
      throw;
    }
  }
  void look_at(const step::Step& edge) {
    steps.follow(edge);
    const bool whole = edge.phase == Name{} && edge.micro_batch == 0;
    if (whole && edge.edge == step::Edge::begin) ++figures.steps;
    if (whole && edge.edge == step::Edge::end) end_step(edge);
  }
  void look_at(const SourceNotice& notice) {
    if (notice.state == SourceState::unavailable) return;
    if (notice.state == SourceState::detached) tell_left([](const Made&) { return true; });
    // While it comes and goes some calls are told and others are not.
    events.clear();
    streams.clear();
    growth.clear();
    if (notice.state == SourceState::lent || notice.state == SourceState::lost) ++figures.restarts;
  }
  void look_at(const ContextEvent& context) {
    if (context.change == ContextChange::made || context.phase == Phase::failed) return;
    const bool reset = context.change == ContextChange::reset;
    tell_left([&](const Made& made) {
      return reset ? made.device == context.device : made.context == context.context;
    });
    growth.clear();
  }
  void look_at(const EventCreation& call) { make(events, call, call.event); }
  void look_at(const EventDeletion& call) { events.end(call.event, succeeded(call)); }
  void look_at(const StreamCreation& call) { make(streams, call, call.stream); }
  void look_at(const StreamDeletion& call) { streams.end(call.stream, succeeded(call)); }
  void look_at(const MemoryAllocation& call) {
    if (succeeded(call)) growth.allocate(call);
  }
  void look_at(const MemoryDeallocation& call) { growth.release(call, succeeded(call)); }
  void look_at(const EventSynchronization& call) { synchronize(call, kNoStream, call.event); }
  void look_at(const StreamSynchronization& call) { synchronize(call, call.stream, 0); }
  void look_at(const DeviceSynchronization& call) { synchronize(call, kNoStream, 0); }

  /// Publishes what is due, without the lock: subscribers may ask for figures.
  void publish(const std::vector<Alarm>& all) {
    std::exception_ptr thrown;
    for (const Alarm& alarm : all) {
      (void)bus.channel<Alarm>().publish(alarm);  // its ledger knows
      if (!say) continue;
      try {
        say(alarm);
      } catch (...) {
        if (thrown == nullptr) thrown = std::current_exception();
      }
    }
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }

  Bus& bus;
  const AlarmOptions options;
  const Say say;
  mutable std::mutex mutex;  // of all that follows
  Subscription heard;
  SubscriberStats last;  // once it has left
  bool started = false;  // all that it subscribed to is told
  bool finished = false;
  std::uint64_t lost = 0;
  Figures figures;
  step::Follower steps;
  alarms::Causes causes{kCausesMax};
  alarms::Handles events{kHandlesMax};
  alarms::Handles streams{kHandlesMax};
  alarms::Growth growth;
  std::vector<Judgement> races;  // of the event that is being heard
  std::vector<Alarm> due;        // to be published
  Hazards hazards{[this](const Judgement& verdict) {
    if (verdict.race) races.push_back(verdict);
  }};
};

Alarms::Alarms(Bus& bus, AlarmOptions options, Say say) {
  if (const auto fault = options.fault()) throw std::invalid_argument(fault->message);
  const bool races = options.races;
  core_ = std::make_shared<Core>(bus, std::move(options), std::move(say));
  const auto hear = [core = core_](const auto& event) {
    std::vector<Alarm> due;
    {
      const std::lock_guard lock(core->mutex);
      core->hear(event);
      due.swap(core->due);
    }
    core->publish(due);
  };
  Subscription heard = races ? CallsAndUses::subscribe(bus, hear) : Calls::subscribe(bus, hear);
  {
    const std::lock_guard lock(core_->mutex);
    core_->heard = std::move(heard);
  }
  // A source that is attached is asked for calls one by one, and until then tells some of them and
  // others not. What it told meanwhile, and what was in the queues, is heard and left out.
  if (bus.wait_told(kComing)) (void)bus.flush(kComing);
  const std::lock_guard lock(core_->mutex);
  core_->lost = core_->lost_now();
  core_->started = true;
}

Alarms::Alarms(Alarms&&) noexcept = default;
Alarms& Alarms::operator=(Alarms&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) core_->leave();
    core_ = std::move(other.core_);
  }
  return *this;
}
Alarms::~Alarms() {
  if (core_ != nullptr) core_->leave();
}

bool Alarms::finish() {
  if (core_ == nullptr) return true;
  const bool all = core_->bus.flush(std::chrono::seconds(1));
  const bool before = !core_->leave();
  if (before) return true;
  std::vector<Alarm> due;
  {
    const std::lock_guard lock(core_->mutex);
    core_->tell_left([](const Made&) { return true; });
    core_->causes.for_each_again([&](const Alarm& alarm) { core_->due.push_back(alarm); });
    due.swap(core_->due);
  }
  core_->publish(due);
  return all;
}

Alarms::Figures Alarms::figures() const {
  if (core_ == nullptr) return {};
  const std::lock_guard lock(core_->mutex);
  Figures figures = core_->figures;
  figures.unjudged_uses = core_->hazards.figures().unjudged;
  figures.unkept += core_->hazards.figures().unkept;
  return figures;
}

SubscriberStats Alarms::stats() const {
  if (core_ == nullptr) return {};
  const std::lock_guard lock(core_->mutex);
  return core_->heard.attached() ? core_->heard.stats() : core_->last;
}

}  // namespace ringmain::cuda
