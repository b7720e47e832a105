#include "adapters/sources/compile/trace_tap.hpp"

#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "adapters/sources/compile/clock.hpp"
#include "adapters/sources/compile/dynamo/interpreter.hpp"
#include "adapters/sources/compile/dynamo/span_id.hpp"

namespace ringmain::compile {
namespace {

/// The channels of all events, or publishers on them.
template <template <class> class Of, class>
struct EachOf;
template <template <class> class Of, class... E>
struct EachOf<Of, std::variant<E...>> {
  using Tuple = std::tuple<Of<E>...>;
};
template <class E>
using ChannelTo = Channel<E>*;
using Channels = EachOf<ChannelTo, Said>::Tuple;
using Publishers = EachOf<Publisher, Said>::Tuple;

template <class>
struct NamesOf;
template <class... E>
struct NamesOf<std::variant<E...>> {
  static constexpr std::array<std::string_view, sizeof...(E)> kNames{
      describe(EventOf<E>{}).name...};
};

Channels channels_of(Bus& bus) {
  Channels made{};
  std::apply(
      [&bus](auto&... channel) {
        ((channel = &bus.channel<typename std::remove_pointer_t<
                         std::remove_reference_t<decltype(channel)>>::event_type>()),
         ...);
      },
      made);
  return made;
}

}  // namespace

std::string_view to_string(TraceSkip skip) noexcept {
  static constexpr std::string_view kNames[] = {"bad_json",   "not_an_object", "no_kind",
                                                "bad_record", "bad_payload",   "too_large",
                                                "no_memory"};
  static_assert(std::size(kNames) == kTraceSkips);
  return kNames[static_cast<std::size_t>(skip)];
}

std::uint64_t TraceCounts::skipped_total() const noexcept {
  return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0});
}

std::uint64_t new_span() noexcept {
  static std::atomic<std::uint64_t> spans{0};
  return ++spans;
}

std::uint32_t this_thread() noexcept {
  static thread_local const auto id = static_cast<std::uint32_t>(::gettid());
  return id;
}

std::span<const std::string_view> TraceTap::channels() noexcept {
  return NamesOf<Said>::kNames;
}

struct TraceTap::Core {
  Core(Bus& bus, bool past) : channels(channels_of(bus)), recorded(past), interpreter(past) {}

  /// Below a fork nobody hears, and another thread may have held the lock.
  [[nodiscard]] bool forked() const noexcept { return ::getpid() != pid; }

  template <class E>
  [[nodiscard]] bool wanted() const noexcept {
    return std::get<Channel<E>*>(channels)->wanted();
  }
  template <class E>
  PublishResult publish_event(const E& event, std::int64_t time_ns) noexcept {
    return recorded ? std::get<Publisher<E>>(publishers).publish_at(event, time_ns)
                    : std::get<Channel<E>*>(channels)->publish(event);
  }

  /// Calls `tell(interpreter, out)` under the lock, and publishes what it gave without it.
  template <class F>
  void with(F tell) noexcept {
    if (forked()) return;
    try {
      std::vector<Timed> out;
      {
        const std::lock_guard lock(mutex);
        interpreter.want({wanted<StackFrame>(), wanted<InstalledGuard>(), wanted<Code>()});
        tell(interpreter, out);
      }
      for (const Timed& one : out) {
        std::visit([&](const auto& event) { publish(event, one.time_ns); }, one.said);
      }
    } catch (...) {  // out of memory
      const std::lock_guard lock(mutex);
      interpreter.count_skipped(TraceSkip::no_memory);
    }
  }
  template <class E>
  void publish(const E& event, std::int64_t time_ns) noexcept {
    const PublishResult result = publish_event(event, time_ns);
    if constexpr (std::is_same_v<E, Start>) {
      if (result != PublishCode::vetoed) return;
      const std::lock_guard lock(mutex);
      interpreter.veto(event.span, result.why);
    }
  }

  const Channels channels;
  const bool recorded;
  const pid_t pid = ::getpid();
  Publishers publishers;
  mutable std::mutex mutex;
  Interpreter interpreter;
};

TraceTap::TraceTap(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
TraceTap::TraceTap(Bus& bus) : core_(std::make_unique<Core>(bus, false)) {}
TraceTap::TraceTap(TraceTap&&) noexcept = default;
TraceTap& TraceTap::operator=(TraceTap&&) noexcept = default;
TraceTap::~TraceTap() = default;

Result<TraceTap> TraceTap::recorded(Bus& bus) {
  auto core = std::make_unique<Core>(bus, true);
  PublisherOptions options;
  options.overflow = Overflow::block;
  options.block_us_max = std::chrono::hours(24);
  options.source_time = true;
  std::optional<Error> error;
  const auto take = [&]<class E>(Publisher<E>& to) {
    if (error) return;
    auto made = bus.channel<E>().publisher(options);
    if (made) {
      to = std::move(made).value();
    } else {
      error = made.error();
    }
  };
  std::apply([&take](auto&... publisher) { (take(publisher), ...); }, core->publishers);
  if (error) return *error;
  return TraceTap(std::move(core));
}

void TraceTap::record(std::string_view metadata, std::string_view payload, std::int64_t time_ns,
                      std::uint32_t thread) noexcept {
  core_->with([&](Interpreter& interpreter, std::vector<Timed>& out) {
    const bool live = !core_->recorded;
    interpreter.read({metadata, payload, live && time_ns == 0 ? now_ns() : time_ns,
                      live && thread == 0 ? this_thread() : thread},
                     out);
  });
}

PublishResult TraceTap::started(Trigger trigger, std::string_view id) noexcept {
  std::uint64_t span = 0;
  core_->with([&](Interpreter& interpreter, std::vector<Timed>& out) {
    span = interpreter.started(trigger, id, {{}, {}, now_ns(), this_thread()}, out);
  });
  if (core_->forked()) return {PublishCode::forked, {}};
  const std::lock_guard lock(core_->mutex);
  return core_->interpreter.verdict(span);
}

void TraceTap::ended(Trigger, std::string_view) noexcept {
  core_->with([](Interpreter& interpreter, std::vector<Timed>& out) {
    interpreter.ended({{}, {}, now_ns(), this_thread()}, out);
  });
}

void TraceTap::guard_checked(bool hit) noexcept {
  Channel<Guard>& guards = *std::get<Channel<Guard>*>(core_->channels);
  if (!guards.wanted()) return;
  Guard said;
  said.what = hit ? Guard::What::hit : Guard::What::miss;
  guards.post(said);
}

void TraceTap::reset() noexcept {
  core_->with(
      [](Interpreter& interpreter, std::vector<Timed>& out) { interpreter.reset(now_ns(), out); });
}

void TraceTap::file_named(std::int64_t number, std::string_view path) noexcept {
  core_->with(
      [&](Interpreter& interpreter, std::vector<Timed>&) { interpreter.file_named(number, path); });
}

void TraceTap::finish() noexcept {
  core_->with(
      [](Interpreter& interpreter, std::vector<Timed>& out) { interpreter.finish(now_ns(), out); });
}

TraceCounts TraceTap::counts() const {
  if (core_->forked()) return {};
  const std::lock_guard lock(core_->mutex);
  return core_->interpreter.counts();
}
std::map<std::string, std::uint64_t> TraceTap::kinds() const {
  if (core_->forked()) return {};
  const std::lock_guard lock(core_->mutex);
  return core_->interpreter.kinds();
}
std::map<std::string, std::uint64_t> TraceTap::artifacts() const {
  if (core_->forked()) return {};
  const std::lock_guard lock(core_->mutex);
  return core_->interpreter.artifacts();
}

}  // namespace ringmain::compile
