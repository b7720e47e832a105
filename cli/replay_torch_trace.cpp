#include "cli/replay_torch_trace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bus/bus.hpp"

#include "adapters/formats/json_text.hpp"
#include "adapters/sources/compile/log_reader.hpp"
#include "adapters/sources/replay/kineto_bytes.hpp"
#include "adapters/sources/replay/replay_pace.hpp"

#include "cli/arguments.hpp"
#include "cli/provider_names.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// The result of playing a log.
struct TraceResult {
  compile::LogCounts log;
  compile::TraceCounts trace;
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, std::uint64_t> artifacts;
  std::vector<ChannelStats> channels;
  std::uint64_t heard = 0;
  std::uint64_t offered = 0;
  double seconds = 0;
  int signal = 0;
  std::vector<std::string> sentences;

  [[nodiscard]] std::uint64_t skipped() const noexcept {
    return log.skipped_total() + trace.skipped_total();
  }
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return offered > heard ? offered - heard : 0;
  }
  [[nodiscard]] int exit_status() const noexcept {
    if (signal != 0) return kSignalled + signal;
    return sentences.empty() && lost() == 0 ? kDone : kFailed;
  }
};

class TraceRun {
 public:
  explicit TraceRun(const ReplayCall& call)
      : call_(call), line_(call.progress && !call.quiet), pace_(call.options.speed) {}

  TraceResult run() {
    for (const std::string& sink : call_.sinks) {
      auto opened = known_providers().open_sink(sink);
      if (!opened) {
        fault(opened.error().message);
        return std::move(result_);
      }
      sinks_.push_back(std::move(opened).value());
    }
    play();
    for (auto& sink : sinks_) {
      if (auto closed = sink.close(); !closed) fault(closed.error().message);
    }
    line_.clear();
    return std::move(result_);
  }

 private:
  void fault(std::string sentence) { result_.sentences.push_back(std::move(sentence)); }

  void play() {
    BusOptions options;
    options.workers = call_.workers;
    Bus& bus = bus_.emplace(options);
    std::atomic<std::uint64_t> heard{0};
    std::vector<Subscription> hearing;
    compile::for_each_traced([&]<class E>() {
      auto& channel = bus.channel<E>();
      if (!pattern_matches(call_.options.select, channel.name())) return;
      hearing.push_back(channel.subscribe_batch([&heard](Batch<E> batch) { heard += batch.size(); },
                                                {.name = "summary"}));
      for (auto& sink : sinks_) sink.listen(channel);
    });
    begin_ = Clock::now();
    for (const std::string& file : call_.files) {
      if (result_.signal != 0) break;
      auto tap = compile::TraceTap::recorded(bus);  // ids are each process's own
      if (!tap) return fault(tap.error().message);
      read(file, tap.value());
      tap.value().finish();
      add(tap.value());
    }
    drain(bus);
    result_.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    result_.heard = heard;
    for (ChannelStats& channel : bus.stats().channels) {
      if (!channel.name.starts_with("compile.") || channel.mailbox) continue;
      result_.offered += channel.offered;
      result_.channels.push_back(std::move(channel));
    }
  }

  void add(const compile::TraceTap& tap) {
    const compile::TraceCounts counts = tap.counts();
    result_.trace.mapped += counts.mapped;
    result_.trace.passed += counts.passed;
    for (std::size_t i = 0; i < counts.skipped.size(); ++i) {
      result_.trace.skipped[i] += counts.skipped[i];
    }
    for (const auto& [name, n] : tap.kinds()) result_.kinds[name] += n;
    for (const auto& [name, n] : tap.artifacts()) result_.artifacts[name] += n;
  }

  void read(const std::string& file, compile::TraceTap& tap) {
    auto opened = replay::KinetoBytes::open(file, {}, false);
    if (!opened) return fault(opened.error().message);
    replay::KinetoBytes& bytes = opened.value();
    compile::LogReader reader(tap, [this](std::int64_t time_ns) { return wait_for(time_ns); });
    std::vector<char> room(std::size_t{256} << 10);
    for (;;) {
      const auto got = bytes.read(room);
      if (!got) fault(got.error().message);
      if (!got || got.value() == 0 || !reader.feed({room.data(), got.value()})) break;
      const auto all = static_cast<double>(bytes.size());
      line_.show("replaying", all > 0 ? static_cast<double>(bytes.position()) / all : -1,
                 plural(reader.counts().records, "record"));
    }
    reader.finish();
    const compile::LogCounts& counts = reader.counts();
    if (counts.records == 0 && result_.signal == 0) {
      fault(bytes.path() + " holds no record of a structured trace in its " +
            plural(counts.lines, "line") +
            "; TORCH_TRACE=FOLDER makes PyTorch write such logs (dedicated_log_torch_trace_*.log)");
    }
    result_.log.lines += counts.lines;
    result_.log.records += counts.records;
    result_.log.with_payload += counts.with_payload;
    result_.log.given += counts.given;
    for (std::size_t i = 0; i < counts.skipped.size(); ++i) {
      result_.log.skipped[i] += counts.skipped[i];
    }
  }

  /// Waits until the record is due. False: Ctrl-C.
  bool wait_for(std::int64_t time_ns) {
    const auto due = begin_ + std::chrono::nanoseconds(pace_.due_ns(time_ns, true));
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(due - Clock::now()).count();
      const bool late = pace_.flat_out() || left <= 0;
      if (late && ++since_look_ % 64 != 0) return true;
      const auto limit_ms = late ? 0 : static_cast<int>(std::min<std::int64_t>(left, 50));
      result_.signal = signals_.wait(limit_ms).signal;
      if (result_.signal != 0) return false;
      if (late) return true;
    }
  }

  void drain(Bus& bus) {
    const auto since = Clock::now();
    while (!bus.flush(milliseconds(50))) {
      if (const int signal = signals_.wait(0).signal; signal != 0) result_.signal = signal;
      if (result_.signal != 0 && Clock::now() - since > std::chrono::seconds(5)) return;
    }
  }

  const ReplayCall& call_;
  Signals signals_;  // made before any thread
  ProgressLine line_;
  replay::Pace pace_;
  Clock::time_point begin_;
  unsigned since_look_ = 0;
  std::optional<Bus> bus_;  // before the sinks, which may publish when they are closed
  std::vector<registry::SinkHandle> sinks_;
  TraceResult result_;
};

void print_text(std::FILE* to, const ReplayCall& call, const TraceResult& result) {
  const std::string files = call.files.front() == "-" ? "standard input" : call.files.front();
  std::fprintf(to, "replayed %s, a structured trace of PyTorch\n\n", files.c_str());
  std::fprintf(to, "  %-24s %11s %11s %9s\n", "channel", "offered", "delivered", "dropped");
  for (const ChannelStats& c : result.channels) {
    if (c.offered == 0) continue;
    std::fprintf(to, "  %-24s %11s %11s %9s\n", c.name.c_str(), with_commas(c.offered).c_str(),
                 with_commas(c.delivered).c_str(), with_commas(c.offered - c.delivered).c_str());
  }
  std::string reasons;
  const auto add = [&reasons](std::uint64_t n, std::string_view why) {
    if (n == 0) return;
    reasons += (reasons.empty() ? " (" : ", ") + with_commas(n) + " " + std::string(why);
  };
  for (std::size_t i = 0; i < compile::kLogSkips; ++i) {
    add(result.log.skipped[i], to_string(static_cast<compile::LogSkip>(i)));
  }
  for (std::size_t i = 0; i < compile::kTraceSkips; ++i) {
    add(result.trace.skipped[i], to_string(static_cast<compile::TraceSkip>(i)));
  }
  if (!reasons.empty()) reasons += ")";
  std::fprintf(to, "\n  %s read, %s mapped, %s of no concern, %s skipped%s\n",
               plural(result.log.records, "record").c_str(),
               with_commas(result.trace.mapped).c_str(), with_commas(result.trace.passed).c_str(),
               with_commas(result.skipped()).c_str(), reasons.c_str());
}

void add_counts(formats::JsonText& json, const char* key,
                const std::map<std::string, std::uint64_t>& counts) {
  json.key(key).open('{');
  for (const auto& [name, n] : counts) json.key(name).number(n);
  json.close('}');
}

void print_json(std::FILE* to, const ReplayCall& call, const TraceResult& result) {
  formats::JsonText json;
  json.open('{').key("format").text("torch_trace").key("records").open('{');
  json.key("read").number(result.log.records);
  json.key("with_payload").number(result.log.with_payload);
  json.key("mapped").number(result.trace.mapped).key("passed").number(result.trace.passed);
  json.key("skipped").open('{');
  for (std::size_t i = 0; i < compile::kLogSkips; ++i) {
    if (result.log.skipped[i] == 0) continue;
    json.key(to_string(static_cast<compile::LogSkip>(i))).number(result.log.skipped[i]);
  }
  for (std::size_t i = 0; i < compile::kTraceSkips; ++i) {
    if (result.trace.skipped[i] == 0) continue;
    json.key(to_string(static_cast<compile::TraceSkip>(i))).number(result.trace.skipped[i]);
  }
  json.close('}');
  add_counts(json, "kinds", result.kinds);
  add_counts(json, "artifacts", result.artifacts);
  json.close('}').key("channels").open('{');
  for (const ChannelStats& c : result.channels) {
    json.key(c.name).open('{').key("offered").number(c.offered);
    json.key("delivered").number(c.delivered).key("dropped").open('{');
    for (const auto& [reason, n] : dropped_of(c)) json.key(reason).number(n);
    json.close('}').close('}');
  }
  json.close('}').key("events").open('{').key("published").number(result.offered);
  json.key("lost").number(result.lost()).close('}').key("seconds").number(result.seconds);
  json.key("speed");
  call.options.speed == 0 ? json.text("max") : json.number(call.options.speed);
  json.key("interrupted").boolean(result.signal != 0).key("faults").open('[');
  for (const std::string& sentence : result.sentences) json.text(sentence);
  json.close(']').close('}');
  std::fprintf(to, "%s\n", json.str().c_str());
}

}  // namespace

int replay_torch_trace(const ReplayCall& call) {
  const TraceResult result = TraceRun(call).run();
  std::FILE* to = call.output_taken ? stderr : stdout;
  if (call.json) {
    print_json(to, call, result);
  } else if (!call.quiet && result.log.records > 0) {
    print_text(to, call, result);
  }
  std::fflush(to);
  for (const std::string& sentence : result.sentences) (void)failed(sentence);
  if (result.lost() > 0) {
    (void)failed(plural(result.lost(), "event") + " of " + with_commas(result.offered) +
                 " did not arrive");
  }
  if (result.signal != 0) (void)failed("interrupted; what was published until then is summed up");
  return result.exit_status();
}

}  // namespace ringmain::cli
