#include "cli/replay_run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include "bus/bus.hpp"

#include "cli/arguments.hpp"
#include "cli/provider_names.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTickMs = 50;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void leave_at_once(ProgressLine& line, int signal, const char* sentence) {
  line.clear();
  std::fprintf(stderr, "ringmain: %s\n", sentence);
  std::fflush(nullptr);
  ::_exit(kSignalled + signal);
}

class ReplayRun {
 public:
  explicit ReplayRun(const ReplayCall& call) : call_(call), line_(call.progress && !call.quiet) {}

  ReplayResult run() {
    if (open_sinks() && load()) {
      if (result_.events > 0 && !result_.interrupted()) play();
      close_sinks();
    }
    line_.clear();
    return std::move(result_);
  }

 private:
  /// What the bus delivers, counted by kind on the channels' workers.
  struct Heard {
    std::array<std::atomic<std::uint64_t>, replay::kKinds> events{};
    std::vector<Subscription> subscriptions;
  };

  bool fault(std::string sentence) {
    result_.sentences.push_back(std::move(sentence));
    return false;
  }

  bool open_sinks() {
    for (const std::string& sink : call_.sinks) {
      auto opened = known_providers().open_sink(sink);
      if (!opened) return fault(opened.error().message);
      sinks_.push_back(std::move(opened).value());
    }
    return true;
  }
  void close_sinks() {
    for (auto& sink : sinks_) {
      if (auto closed = sink.close(); !closed) fault(closed.error().message);
    }
  }

  bool load() {
    const auto begin = Clock::now();
    std::optional<Result<replay::Recording>> loaded;
    std::exception_ptr thrown;
    replay::LoadProgress progress;
    std::jthread loader([&](const std::stop_token& stop) {
      try {
        loaded.emplace(replay::Recording::load(call_.files, call_.options, stop, progress));
      } catch (...) {
        thrown = std::current_exception();
      }
      signals_.tell();
    });
    std::optional<Clock::time_point> asked;
    for (Signals::Heard heard; !heard.told; heard = signals_.wait(kTickMs)) {
      const bool again = heard.signal != 0 && asked;
      if (again || (asked && seconds_since(*asked) > 1)) {
        leave_at_once(line_, result_.signal, "interrupted while reading; nothing was replayed");
      }
      if (heard.signal != 0) {
        result_.signal = heard.signal;
        asked = Clock::now();
        loader.request_stop();
      }
      show_loading(progress, begin);
    }
    loader.join();
    if (thrown) std::rethrow_exception(thrown);
    if (!*loaded) return fault(loaded->error().message);
    recording_.emplace(std::move(*loaded).value());
    result_.loading_seconds = seconds_since(begin);
    take_figures();
    return true;
  }

  void show_loading(const replay::LoadProgress& progress, Clock::time_point begin) {
    const std::uint64_t all = progress.bytes_all;
    const std::uint64_t bytes = progress.bytes;
    const double share = all == 0 ? -1 : static_cast<double>(bytes) / static_cast<double>(all);
    line_.show("reading", share,
               plural(progress.events, "event") + ", " + duration_text(1e9 * seconds_since(begin)));
  }

  void take_figures() {
    result_.counts = recording_->counts;
    result_.events = recording_->store.size() * call_.options.loops;
    result_.left_out = recording_->left_out;
    result_.crowded = recording_->crowded;
    result_.spilled_bytes = recording_->store.spilled_bytes();
    result_.recorded_ns = recording_->last_ns - recording_->first_ns;
    for (const std::string& sentence : recording_->faults) fault(sentence);
  }

  void play() {
    BusOptions options;
    options.workers = call_.workers;
    Bus& bus = bus_.emplace(options);
    result_.workers = bus.workers();
    Heard heard;
    listen(bus, heard);
    const auto begin = Clock::now();
    replay::ReplayOptions playing = call_.options;
    playing.done = [this] { signals_.tell(); };
    auto source = replay::Source::attach(bus, *recording_, playing);
    if (!source) return static_cast<void>(fault(source.error().message));
    result_.played = true;
    watch(source.value(), begin);
    result_.outcome = source.value().wait();
    drain(bus);
    result_.seconds = seconds_since(begin);
    if (result_.outcome.error) fault(result_.outcome.error->message);
    take_stats(bus, heard);
  }

  void listen(Bus& bus, Heard& heard) {
    // A large trace is measured at every fourth event: each look at the clock costs 20 ns.
    const ChannelOptions channel{.latency_every = result_.events > 1'000'000 ? 4u : 1u};
    replay::for_each_kind([&]<class E>(std::size_t kind) {
      if (!recording_->selected[kind]) return;
      auto& made = *bus.configure<E>(channel).value();  // the bus is new: this cannot fail
      heard.subscriptions.push_back(made.subscribe_batch(
          [&n = heard.events[kind]](Batch<E> batch) { n += batch.size(); }, {.name = "summary"}));
      for (auto& sink : sinks_) {
        if (!sink.subscribes()) sink.listen(made);
      }
    });
    for (auto& sink : sinks_) {  // once the channels are there
      if (!sink.subscribes()) continue;
      if (const auto attached = sink.attach(bus); !attached) fault(attached.error().message);
    }
  }

  void interrupt(int signal) {
    if (result_.interrupted()) {
      leave_at_once(line_, signal, "interrupted twice; what was under way is lost");
    }
    result_.signal = signal;
  }

  void watch(replay::Source& source, Clock::time_point begin) {
    for (Signals::Heard heard; !heard.told; heard = signals_.wait(kTickMs)) {
      if (heard.signal != 0) {
        interrupt(heard.signal);
        source.stop();
      }
      const std::uint64_t published = source.published();
      const double seconds = seconds_since(begin);
      line_.show("replaying", static_cast<double>(published) / static_cast<double>(result_.events),
                 plural(published, "event") + ", " +
                     rate_text(static_cast<double>(published) / std::max(seconds, 1e-3)) + ", " +
                     plural(source.churn().came, "subscriber") + " came");
    }
  }

  /// Waits until every subscriber and sink has heard what is queued. A stuck sink holds this up, as
  /// it should, until Ctrl-C.
  void drain(Bus& bus) {
    const auto begin = Clock::now();
    while (!bus.flush(milliseconds(kTickMs))) {
      if (const int signal = signals_.wait(0).signal; signal != 0) interrupt(signal);
      if (result_.interrupted() && seconds_since(begin) > 5) {
        leave_at_once(line_, result_.signal,
                      "interrupted, and a sink took nothing for 5 s; what was queued is lost");
      }
      line_.show("draining", -1, duration_text(1e9 * seconds_since(begin)));
    }
  }

  void take_stats(const Bus& bus, const Heard& heard) {
    const Stats stats = bus.stats();
    for (std::size_t kind = 0; kind < replay::kKinds; ++kind) {
      const std::string_view name = replay::kind_channels()[kind];
      const auto channel = std::find_if(stats.channels.begin(), stats.channels.end(),
                                        [&](const ChannelStats& c) { return c.name == name; });
      if (channel == stats.channels.end() || !recording_->selected[kind]) continue;
      result_.channels.push_back(*channel);
      result_.heard.push_back(heard.events[kind]);
    }
    for (const WorkerStats& worker : stats.workers) {
      result_.parks += worker.parks;
      result_.wakes += worker.wakes;
    }
  }

  const ReplayCall& call_;
  Signals signals_;  // made before any thread
  ProgressLine line_;
  std::optional<Bus> bus_;  // before the sinks, which may publish when they are closed
  std::vector<registry::SinkHandle> sinks_;
  std::optional<replay::Recording> recording_;
  ReplayResult result_;
};

}  // namespace

std::vector<std::pair<std::string, std::uint64_t>> dropped_of(const ChannelStats& c) {
  std::vector<std::pair<std::string, std::uint64_t>> all{
      {"full", c.full},           {"closed", c.closed},  {"no_memory", c.no_memory},
      {"too_deep", c.too_deep},   {"vetoed", c.vetoed},  {"evicted", c.evicted},
      {"discarded", c.discarded}, {"pending", c.pending}};
  std::erase_if(all, [](const auto& reason) { return reason.second == 0; });
  return all;
}

std::uint64_t ReplayResult::offered() const noexcept {
  return std::accumulate(channels.begin(), channels.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ChannelStats& c) { return sum + c.offered; });
}
std::uint64_t ReplayResult::delivered() const noexcept {
  return std::accumulate(
      channels.begin(), channels.end(), std::uint64_t{0},
      [](std::uint64_t sum, const ChannelStats& c) { return sum + c.delivered; });
}

std::uint64_t ReplayResult::lost() const noexcept {
  const std::uint64_t all_heard = std::accumulate(heard.begin(), heard.end(), std::uint64_t{0});
  const std::uint64_t due =
      interrupted() ? outcome.accepted + outcome.refused + outcome.unheard : (played ? events : 0);
  return due > all_heard ? due - all_heard : 0;
}

int ReplayResult::exit_status() const noexcept {
  if (interrupted()) return kSignalled + signal;
  const bool late = outcome.churn.called_late > 0 || outcome.churn.kept_captures > 0;
  return sentences.empty() && lost() == 0 && !late ? kDone : kFailed;
}

ReplayResult run_replay(const ReplayCall& call) {
  return ReplayRun(call).run();
}

}  // namespace ringmain::cli
