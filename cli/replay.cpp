// `ringmain replay`: which options are there, and can the call be carried out?
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "bus/bus.hpp"

#include "adapters/sources/compile/trace_tap.hpp"

#include "cli/known_channels.hpp"
#include "cli/provider_names.hpp"
#include "cli/replay_report.hpp"
#include "cli/replay_run.hpp"
#include "cli/replay_torch_trace.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

std::string in_quotes(std::string_view word) {
  return "'" + std::string(word) + "'";
}

std::string read_sink(const std::string& sink, ReplayCall& call) {
  const auto known = known_providers().check(registry::ProviderKind::sink, sink);
  if (!known) return known.error().message;
  call.sinks.push_back(sink);
  // Where the lines go to standard output, the summary must not lie among them.
  call.output_taken |=
      known.value().argument == "FILE" && (sink.ends_with(":-") || sink.ends_with(":/dev/stdout"));
  return "";
}

std::string read_select(const std::string& pattern, std::span<const std::string_view> channels) {
  if (matches_one(pattern, channels)) return "";
  return "no channel of a replay matches " + in_quotes(pattern) +
         nearest_pattern(pattern, channels);
}

std::string read_numbers(const Arguments& arguments, ReplayCall& call) {
  if (const auto speed = arguments.value("--speed")) {
    const auto factor = *speed == "max" ? 0 : parse_number(*speed, 1e-6, 1e9);
    if (!factor) return "--speed wants a factor above 0, or max, and not " + in_quotes(*speed);
    call.options.speed = *factor;
  }
  if (const auto loops = arguments.value("--loop")) {
    const auto times = parse_number(*loops, 1, 1e9);
    if (!times || *times != static_cast<std::uint32_t>(*times)) {
      return "--loop wants a whole number above 0, and not " + in_quotes(*loops);
    }
    call.options.loops = static_cast<std::uint32_t>(*times);
  }
  if (const auto workers = arguments.value("--workers")) {
    const auto count = parse_number(*workers, 1, 32);
    if (!count || *count != static_cast<unsigned>(*count)) {
      return "--workers wants a whole number from 1 to 32, and not " + in_quotes(*workers);
    }
    call.workers = static_cast<unsigned>(*count);
  }
  if (const auto memory = arguments.value("--memory-max")) {
    const auto bytes = parse_bytes(*memory);
    if (!bytes || *bytes < replay::ReplayOptions::kMemoryMin) {
      return "--memory-max wants at least 32M, such as 256M or 2G, and not " + in_quotes(*memory);
    }
    call.options.memory_max = *bytes;
  }
  return "";
}

std::string read_format(const Arguments& arguments, ReplayCall& call) {
  const auto format = arguments.value("--format").value_or("kineto");
  if (format != "kineto" && format != "torch_trace") {
    return "--format is kineto or torch_trace, and not " + in_quotes(format) +
           did_you_mean(format, {"kineto", "torch_trace"});
  }
  call.torch_trace = format == "torch_trace";
  for (const char* const option : {"--order", "--loop", "--memory-max"}) {
    if (call.torch_trace && arguments.has(option)) {
      return std::string(option) +
             " is for Kineto traces: a structured trace is played once, line by line";
    }
  }
  return "";
}

/// Fills `call`; returns a sentence if that is not possible.
std::string read_call(const Arguments& arguments, ReplayCall& call) {
  call.files = arguments.operands();
  if (call.files.empty())
    return "replay wants a trace: ringmain replay FILE, or - for standard input";
  if (std::count(call.files.begin(), call.files.end(), "-") > 1) {
    return "standard input can be read only once, and - was given more than once";
  }
  call.options.visitors = true;
  call.json = arguments.has("--json");
  call.quiet = arguments.has("--quiet");
  call.progress = !arguments.has("--no-progress");
  if (auto sentence = read_format(arguments, call); !sentence.empty()) return sentence;
  if (auto sentence = read_numbers(arguments, call); !sentence.empty()) return sentence;
  if (const auto order = arguments.value("--order")) {
    if (*order != "thread" && *order != "recorded") {
      return "--order is thread or recorded, and not " + in_quotes(*order) +
             did_you_mean(*order, {"thread", "recorded"});
    }
    call.options.order = *order == "thread" ? replay::Order::thread : replay::Order::recorded;
  }
  if (const auto pattern = arguments.value("--select")) {
    const auto channels = call.torch_trace
                              ? compile::TraceTap::channels()
                              : std::span<const std::string_view>(replay::kind_channels());
    if (auto sentence = read_select(*pattern, channels); !sentence.empty()) return sentence;
    call.options.select = *pattern;
  }
  for (const std::string& sink : arguments.values("--sink")) {
    if (auto sentence = read_sink(sink, call); !sentence.empty()) return sentence;
  }
  return "";
}

int run(const Arguments& arguments) {
  ReplayCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty()) {
    return wrong_usage("replay", sentence);
  }
  if (call.torch_trace) return replay_torch_trace(call);
  const ReplayResult result = run_replay(call);
  std::FILE* to = call.output_taken ? stderr : stdout;
  if (call.json) {
    print_replay_json(to, call, result);
  } else if (!call.quiet &&
             (result.played || (result.sentences.empty() && !result.interrupted()))) {
    print_replay_text(to, call, result);
  }
  std::fflush(to);
  for (const std::string& sentence : result.sentences) (void)failed(sentence);
  if (result.lost() > 0) {
    (void)failed(plural(result.lost(), "event") + " of " + with_commas(result.events) +
                 " did not arrive");
  }
  if (result.interrupted())
    (void)failed(result.played ? "interrupted; what was published until then is summed up"
                               : "interrupted while reading; nothing was replayed");
  return result.exit_status();
}

}  // namespace

const Verb& replay_verb() {
  static const Option kOptions[] = {
      {"--format", "FORMAT",
       "kineto: what torch.profiler writes (the default)\n"
       "torch_trace: what PyTorch writes under TORCH_TRACE: its compiles",
       "kineto torch_trace"},
      {"--speed", "FACTOR", "1: as recorded (the default); 10: ten times as fast; max: no pauses",
       "1 10 max"},
      {"--order", "ORDER",
       "thread: a thread per recorded thread, each in its order (the default)\n"
       "recorded: one thread, all events in the order of their times",
       "thread recorded"},
      {"--loop", "N", "play N times"},
      {"--select", "PATTERN", "only channels that match: 'cuda.*', 'collective.>', 'replay.slice'"},
      {"--sink", "SINK",
       "json_lines:FILE writes every event as a line of JSON (- is standard output;\n"
       "%r %p %h %j in FILE are rank, process, host and job); summary writes a line\n"
       "of figures per second to standard error; 'ringmain providers' lists them all;\n"
       "may be given more than once"},
      {"--memory-max", "BYTES",
       "all that reading, sorting and queueing may hold (1G); at least 32M"},
      {"--workers", "N", "worker threads that drain the channels"},
      {"--json", "", "the summary as one JSON object"},
      {"--quiet", "", "no summary, no progress: only what went wrong"},
      {"--no-progress", "", "no progress line, also on a terminal"}};
  static const Verb kVerb{
      "replay",
      "FILE…",
      "play recorded traces through the channels",
      "Reads traces that torch.profiler wrote (Chrome JSON, plain or gzip; - "
      "is standard input) and\n"
      "publishes every record, from a thread per recorded thread, without "
      "loss. Meanwhile subscribers\n"
      "come and go. At the end: what each channel was offered and delivered, "
      "and how long it took.\n"
      "Several files are played together, by their recorded times.\n"
      "With --format torch_trace it plays structured logs of PyTorch instead, one "
      "after the other.\n\n"
      "exit status: 0; 1 where a trace could not be read to its end, a sink "
      "failed, or an event was\n"
      "lost; 2 for a wrong call; 130 after Ctrl-C.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
