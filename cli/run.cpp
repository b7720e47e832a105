// `ringmain run`: a command with its events in the sinks that were named, and nothing changed in
// it.
//
// It becomes the command (exec), so that exit status, signals, terminal and output are the
// command's own. What must happen in the command's processes is done in them, by libringmain_run
// and the sources.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "bus/core/recording_core.hpp"

#include "adapters/formats/output_file.hpp"
#include "adapters/launch/flight_mark.hpp"
#include "adapters/launch/part.hpp"
#include "adapters/launch/plan.hpp"

#include "cli/known_channels.hpp"
#include "cli/program_file.hpp"
#include "cli/provider_names.hpp"
#include "cli/run_command.hpp"
#include "cli/verbs.hpp"
#include "cli/watchers.hpp"

namespace ringmain::cli {
namespace {

using registry::EnvironmentEdit;
using registry::ProviderInfo;
using registry::ProviderKind;
using registry::Spec;

struct RunCall {
  run::Plan plan;
  std::vector<ProviderInfo> sources;
  std::vector<std::string> command;
  bool door = false;
  bool to_files = true;  // every sink writes a file, and does nothing else
};

/// Does the sink write a file that can be opened when there is something to write? Not standard
/// output, which must be kept from the start, before the program closes it; not a plugin, whose
/// trust is judged by the rights that the program had at its start.
bool can_wait(const std::string& sink, const ProviderInfo& info) {
  const std::string path(Spec::of(sink).argument.value_or(""));
  return info.from.empty() && info.argument == "FILE" && path.starts_with("/") &&
         !path.starts_with("/dev/std") && !path.starts_with("/dev/fd/") &&
         !path.starts_with("/proc/");
}

/// "json_lines:out.jsonl" with its path made absolute: the command's processes may be elsewhere.
std::string anchored(const std::string& spec, const ProviderInfo& info) {
  const Spec parts = Spec::of(spec);
  const std::string path(parts.argument.value_or(""));
  const bool is_file = info.argument == "FILE" || info.argument == "[FILE]";
  if (!is_file || path.empty() || path == "-" || path.front() == '/') return spec;
  return std::string(parts.name) + ":" + (std::filesystem::current_path() / path).string();
}

/// The places of plugins made absolute: the command's processes may be elsewhere.
void anchor_plugins() {
  const char* const said = std::getenv("RINGMAIN_PLUGINS");
  std::string made;
  for (std::string_view left = said == nullptr ? "" : said; !left.empty();) {
    const std::string_view place = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(place.size() + 1, left.size()));
    if (place.empty()) continue;
    made += (made.empty() ? "" : ":") + (std::filesystem::current_path() / place).string();
  }
  if (!made.empty()) ::setenv("RINGMAIN_PLUGINS", made.c_str(), 1);
}

/// The clock of files, after its next tick (some milliseconds): what an earlier run wrote is older,
/// what this one will write is not.
std::int64_t next_tick_ns() {
  const auto now_ns = [] {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  const std::int64_t first = now_ns();
  std::int64_t now = first;
  for (int tries = 0; now == first && tries < 1000; ++tries) {
    const timespec some{0, 500'000};
    (void)::nanosleep(&some, nullptr);
    now = now_ns();
  }
  return now;
}

/// A source with a library of its own is in a process once, so its words are one call's.
std::string named_otherwise(const std::vector<std::string>& sources, const std::string& source,
                            const ProviderInfo& info) {
  if (info.run.in_process) return "";
  for (const std::string& other : sources) {
    if (other != source && Spec::of(other).name == info.name)
      return "a process has one source " + info.name + ", and it cannot be both '" + other +
             "' and '" + source + "': name it once";
  }
  return "";
}

std::string read_providers(const Arguments& arguments, RunCall& call) {
  registry::Registry& known = known_providers();
  for (const std::string& sink : arguments.values("--sink")) {
    const auto info = known.check(ProviderKind::sink, sink);
    if (!info) return info.error().message;
    call.plan.sinks.push_back(anchored(sink, info.value()));
    call.to_files = call.to_files && can_wait(call.plan.sinks.back(), info.value());
  }
  for (const std::string& source : arguments.values("--source")) {
    const auto info = known.check(ProviderKind::source, source);
    if (!info) return info.error().message;
    if (!info.value().run.refused.empty()) return info.value().run.refused;
    const std::string spec = anchored(source, info.value());
    const std::string other = named_otherwise(call.plan.sources, spec, info.value());
    if (!other.empty()) return other;
    call.plan.sources.push_back(spec);
    call.sources.push_back(info.value());
  }
  for (const auto* specs : {&call.plan.sinks, &call.plan.sources}) {
    for (const std::string& spec : *specs) {
      if (spec.find('\n') != spec.npos) return "a source's or sink's argument must be one line";
    }
  }
  return "";
}

/// Several --flight are one list.
std::string read_flight(const Arguments& arguments, run::Plan& plan) {
  for (const std::string& patterns : arguments.values("--flight"))
    plan.flight += (plan.flight.empty() ? "" : ",") + patterns;
  if (!arguments.has("--flight")) return "";
  plan.flight_marks = run::flight_marks();
  const auto read = detail::patterns_of(plan.flight);
  return read ? "" : "--flight: " + read.error().message;
}

/// Fills `call`; returns a sentence if that is not possible.
std::string read_call(const Arguments& arguments, RunCall& call) {
  call.command = arguments.operands();
  if (call.command.empty()) return "run wants a command: ringmain run --sink … -- COMMAND";
  call.plan.summary = arguments.has("--summary");
  call.plan.except = arguments.values("--except");
  for (const std::string& name : call.plan.except) {
    if (name.empty() || name == "--" || name.find_first_of("/\n") != name.npos) {
      return "--except wants the name of a command without its folder, and not '" + name + "'";
    }
  }
  if (auto sentence = read_providers(arguments, call); !sentence.empty()) return sentence;
  if (auto sentence = read_flight(arguments, call.plan); !sentence.empty()) return sentence;
  call.door = arguments.has("--door");
  if (call.plan.sinks.empty() && !call.plan.summary && call.plan.flight.empty() && !call.door) {
    return "nobody would hear the events; give --sink json_lines:FILE, --flight PATTERNS, --door, "
           "or --summary, or several of them";
  }
  // A run without a source is for programs that publish: these are heard from the start.
  call.plan.at_start =
      call.sources.empty() || std::any_of(call.sources.begin(), call.sources.end(),
                                          [](const ProviderInfo& s) { return s.run.in_process; });
  // If all sinks are files, nothing need be opened before the program publishes. A summary needs a
  // thread from the start, which keeps standard error.
  if (call.sources.empty() && call.to_files && !call.plan.summary) {
    call.plan.at_start = false;
    call.plan.at_use = true;
  }
  call.plan.started_ns = next_tick_ns();
  call.plan.process = static_cast<std::int32_t>(::getpid());
  if (call.plan.summary && !call.plan.at_start && !call.plan.at_use) {
    const Unused said = if_never_used(call.sources);
    call.plan.unused = said.sentence;
    call.plan.unused_by_launcher = said.by_launcher;
  }
  return "";
}

/// With --except: set() and prepend() also keep what is needed to restore the environment.
bool keep_earlier = false;

void set(const std::string& variable, const std::string& value) {
  if (keep_earlier) {
    const std::string said = run::kSetPrefix + variable;
    const char* const before = std::getenv(variable.c_str());
    if (before != nullptr && std::getenv(said.c_str()) == nullptr) {
      ::setenv((run::kEarlierPrefix + variable).c_str(), before, 1);
    }
    ::setenv(said.c_str(), value.c_str(), 1);
  }
  ::setenv(variable.c_str(), value.c_str(), 1);
}

void prepend(const std::string& variable, const std::string& value) {
  const char* before = std::getenv(variable.c_str());
  const bool any = before != nullptr && *before != '\0';
  set(variable, any ? value + ":" + before : value);
}

/// AddressSanitizer refuses to start if a library was loaded before its own, though it works then.
/// It cannot be known whether one of the command's children will be built with it.
void allow_address_sanitizer() {
  const char* const before = std::getenv("ASAN_OPTIONS");
  std::string options = before == nullptr ? "" : before;
  if (options.find("verify_asan_link_order") != options.npos) return;
  options += options.empty() ? "" : ":";
  set("ASAN_OPTIONS", options + "verify_asan_link_order=0");
}

bool is_in_list(const std::string& variable, const std::string& value) {
  const char* const list = std::getenv(variable.c_str());
  return list != nullptr &&
         (":" + std::string(list) + ":").find(":" + value + ":") != std::string::npos;
}

/// A folder that is named already stays, as a whole path: the command's processes may be elsewhere.
void ask_for_door() {
  const char* const said = std::getenv("RINGMAIN_DOOR");
  const std::string folder = said == nullptr ? "" : said;
  const bool is_path = folder.find('/') != folder.npos;
  set("RINGMAIN_DOOR", is_path ? (std::filesystem::current_path() / folder).string() : "1");
}

/// Why a library is not preloaded into the command itself.
struct NotLoaded {
  std::string why;          // "": it is
  bool no_library = false;  // none can get into the command, in whichever way
};

NotLoaded preload(const std::string& command, const std::string& library) {
  if (::access(library.c_str(), R_OK) != 0)
    return {library + " is not there; install ringmain again"};
  if (library.find_first_of(" :\t\n") != library.npos) {
    return {
        "the path " + library +
        " has a space or a colon in it, which LD_PRELOAD cannot say; install ringmain elsewhere"};
  }
  const std::string path = find_command(command);
  const PreloadHindrance hindrance = path.empty() ? PreloadHindrance{} : preload_hindrance(path);
  if (!hindrance.harms) {  // also if it takes no library: its children may
    if (!is_in_list("LD_PRELOAD", library)) prepend("LD_PRELOAD", library);
    allow_address_sanitizer();
  }
  if (hindrance.why.empty()) return {};
  return {"nothing can be loaded into " + path + ": " + hindrance.why, true};
}

/// Edits the environment; returns a sentence if a preload does not get into the command itself.
std::string apply(EnvironmentEdit edit, const std::string& command, const std::string& libraries) {
  for (std::size_t at = 0; (at = edit.value.find("{libdir}", at)) != edit.value.npos;) {
    edit.value.replace(at, 8, libraries);
    at += libraries.size();
  }
  if (edit.variable == "LD_PRELOAD" && edit.how == EnvironmentEdit::How::prepend)
    return preload(command, edit.value).why;
  if (edit.how == EnvironmentEdit::How::prepend) return prepend(edit.variable, edit.value), "";
  const char* before = std::getenv(edit.variable.c_str());
  // Equal in a run within a run: the earlier value is our own.
  if (before != nullptr && !edit.kept_as.empty() && before != edit.value) {
    set(edit.kept_as, before);
  }
  set(edit.variable, edit.value);
  return "";
}

/// libringmain_run is not in the command: what does that mean for its sources?
void say_missing(const RunCall& call, const NotLoaded& run) {
  bool any = false;
  for (const ProviderInfo& source : call.sources) {
    const bool attaches = !source.run.in_process && !(source.run.to_the_end && run.no_library);
    if (attaches && !source.run.to_the_end) continue;
    (void)failed("source " + source.name +
                 (attaches ? " loses what it publishes right before _exit or an exec: "
                           : " cannot attach: ") +
                 run.why);
    any = true;
  }
  if (!any) (void)failed("events of the program itself cannot be heard: " + run.why);
}

bool hears_to_the_end(const RunCall& call) {
  return std::any_of(call.sources.begin(), call.sources.end(),
                     [](const ProviderInfo& s) { return s.run.to_the_end; });
}

/// What is let into a command for which no source is named.
std::vector<ProviderInfo> unasked_sources() {
  std::vector<ProviderInfo> all = known_providers().list();
  std::erase_if(all, [](const ProviderInfo& one) { return !one.run.unasked; });
  return all;
}

int run(const Arguments& arguments) {
  RunCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty()) {
    return wrong_usage("run", sentence);
  }
  const auto& except = call.plan.except;
  const std::string own = std::filesystem::path(call.command[0]).filename().string();
  if (std::find(except.begin(), except.end(), own) != except.end()) return become(call.command);
  keep_earlier = !except.empty();
  if (std::getenv(formats::kRunStartedVariable) != nullptr) {
    (void)failed("this run is within another one, whose sinks hear nothing of what it starts");
  }
  const std::string libraries = registry::library_folder();
  for (const ProviderInfo& source : call.sources.empty() ? unasked_sources() : call.sources) {
    const std::string missing = nothing_to_watch(source);
    if (!missing.empty()) (void)failed("source " + source.name + " cannot attach: " + missing);
    for (const EnvironmentEdit& edit : source.run.environment) {
      if (const std::string why = apply(edit, call.command[0], libraries); !why.empty())
        (void)failed("source " + source.name + " cannot attach: " + why);
    }
  }
  if (const auto read = detail::patterns_of(call.plan.flight))
    say_misspelt("--flight", read.value());
  anchor_plugins();
  if (call.door) ask_for_door();
  // What a run has recorded is looked for at the command's end.
  const bool wanted =
      call.plan.at_start || call.plan.at_use || !call.plan.flight.empty() || hears_to_the_end(call);
  if (wanted || keep_earlier) {
    const NotLoaded run = preload(call.command[0], libraries + "/" RINGMAIN_RUN_FILE);
    if (wanted && !run.why.empty()) say_missing(call, run);
  }
  for (const auto& [name, value] : call.plan.variables()) ::setenv(name.c_str(), value.c_str(), 1);
  return become(call.command);
}

}  // namespace

const Verb& run_verb() {
  static const Option kOptions[] = {
      {"--source", "SOURCE",
       "what to listen to, such as heartbeat:100; may be given more than once"},
      {"--sink", "SINK",
       "where events go, such as json_lines:FILE (%r %p %h %j in FILE are rank, process,\n"
       "host and job); may be given more than once"},
      {"--flight", "PATTERNS",
       "record the last events of channels such as collective.>,train.* in a file that outlives\n"
       "each process; 'ringmain post-mortem' reads it; may be given more than once"},
      {"--door", "",
       "each process answers 'ringmain door' while it runs or hangs: its figures, its dumps, its\n"
       "Python stacks, and with --source nccl what its operations wait for"},
      {"--except", "NAME",
       "a command that is left alone, with all that it starts, wherever it is started; may be\n"
       "given more than once"},
      {"--summary", "", "a line on standard error at the end of each process"}};
  static const Verb kVerb{
      "run",
      "[--] COMMAND [ARGUMENT…]",
      "run a command with its events in the sinks that are named",
      "Becomes COMMAND, so that its exit status, signals, terminal and output are its own, and "
      "has\n"
      "the sources attach to each of its processes: children and ranks too. Without a source, "
      "what\n"
      "a program publishes itself is heard, and what PyTorch does in it. 'ringmain providers'\n"
      "lists sources and sinks.\n\n"
      "--source cuda takes words after a colon, divided by commas, as in cuda:driver,lane=32768:\n"
      "  hold            CUPTI is not lent to torch.profiler\n"
      "  own             calls that subscribers make are told, too\n"
      "  driver          the driver's calls only\n"
      "  wrapped         calls through the wrapper (traced.hpp) only; CUPTI is not asked\n"
      "  lossless        a call waits until there is room for its event\n"
      "  lane=EVENTS     that room, for each thread and kind: 64 to 1048576, 8192 unless said\n"
      "  handles=NUMBER  live handles that keep their generation: 1024 to 16777216, 65536 unless\n"
      "                  said\n"
      "  cupti=PATH      the file of CUPTI's library, where it is not found by itself\n\n"
      "--source nccl, as in nccl:kernel=never,stall=30:\n"
      "  kernel=never    nothing of kernels, which costs small collectives some per cent\n"
      "  kernel=always   kernels also where /dev/shm has no room for what NCCL needs for it\n"
      "  steps=never     no steps of the proxies\n"
      "  door=WORD       what NCCL is asked for while there is a door, so that it can say what\n"
      "                  hangs: steps (of the proxies, too), all (and kernels) or never;\n"
      "                  operations and proxies unless said\n"
      "  lane=EVENTS     room for each thread and kind: 64 to 1048576, 8192 unless said\n"
      "  stall=SECONDS   that pass without a word of an operation until nccl.stalled says so: 1 "
      "to\n"
      "                  86400, 60 unless said\n\n"
      "--source nccl_calls, as in nccl_calls:ends,tags:\n"
      "  ends            CUDA is asked for the end of each operation\n"
      "  tags            NCCL is told each operation's id, as userProfilerTag\n\n"
      "--sink alarms does so too, as in alarms:without=races,warmup=100:\n"
      "  file=PATH       where its sentences go, as a whole path\n"
      "  allow=NAME      a call, or a phase of a step, whose waits are no alarm\n"
      "  without=KIND    of synchronization, leaks, growth and races\n"
      "  warmup=STEPS    that come before memory is looked at: 10 unless said\n"
      "  rises=STEPS, bytes=BYTES   in and by which it grew: 5 and 1048576 unless said\n\n"
      "exit status: the command's; 2 for a wrong call, 126 if the command cannot be executed, 127\n"
      "if there is none.",
      kOptions,
      run,
      true};
  return kVerb;
}

}  // namespace ringmain::cli
