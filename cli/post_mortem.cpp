// `ringmain post-mortem`: what each thread of a process published last, from the file that its
// flight recorder left; whether the process lives, is dead, or was killed in the middle of a
// record.
#include "cli/post_mortem.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "engine/flight/ring_place.hpp"

#include "cli/arguments.hpp"
#include "cli/fr_output.hpp"
#include "cli/provider_names.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

namespace fs = std::filesystem;
using engine::flight::FlightName;

struct PostMortemCall {
  std::vector<std::string> sinks;
  std::optional<std::string> picture;
  std::optional<std::size_t> events;  // for a person and a program 20, in a picture more
  bool json = false;

  [[nodiscard]] std::size_t told() const { return events.value_or(20); }
  [[nodiscard]] std::size_t drawn() const { return events.value_or(500); }
};

/// Files of a flight recorder, and a sentence for each folder that hid what it has.
struct Found {
  std::vector<std::string> files, unread;
  std::set<std::string> named;  // those that the person has named
  void add(Found more) {
    files.insert(files.end(), more.files.begin(), more.files.end());
    unread.insert(unread.end(), more.unread.begin(), more.unread.end());
    named.merge(more.named);
  }
};

std::string unread(const std::string& path, const std::error_code& why) {
  return path + " cannot be read: " + why.message();
}

bool is_not_there(const std::error_code& why) {
  return why == std::errc::no_such_file_or_directory || why == std::errc::not_a_directory;
}

/// The flight recorder's files of a folder, by process; of that process only, if `pid` is not 0.
Found files_in(const std::string& folder, std::uint32_t pid) {
  std::vector<std::pair<FlightName, std::string>> files;
  std::error_code why;
  for (fs::directory_iterator entry(folder, why), end; !why && entry != end; entry.increment(why)) {
    FlightName name;
    if (!engine::flight::parse_flight_name(entry->path().filename().string(), name)) continue;
    if (pid == 0 || name.pid == pid) files.emplace_back(name, entry->path().string());
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair{a.first.start, a.second} < std::pair{b.first.start, b.second};
  });
  Found found;
  for (auto& [name, path] : files) found.files.push_back(std::move(path));
  if (why && !is_not_there(why)) found.unread.push_back(unread(folder, why));
  return found;
}

Found files_anywhere(std::uint32_t pid) {
  Found found;
  for (const std::string& folder : engine::flight::flight_folders(""))
    found.add(files_in(folder, pid));
  return found;
}

std::string places() {
  std::string words;
  for (const std::string& folder : engine::flight::flight_folders(""))
    words += (words.empty() ? "" : ", ") + folder;
  return words;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.size() <= 9 &&
         word.find_first_not_of("0123456789") == std::string::npos;
}

/// Adds what an operand means; returns a sentence if it means nothing.
std::string find(const std::string& operand, Found& all) {
  std::error_code why;
  const fs::file_status is = fs::status(operand, why);
  Found found;
  if (is.type() == fs::file_type::none) return unread(operand, why);
  if (fs::is_directory(is)) {
    found = files_in(operand, 0);
    if (found.files.empty() && found.unread.empty())
      return operand + " has no file of a flight recorder (flight-PID-….ring)";
  } else if (fs::exists(is)) {
    found.files = {operand};
    found.named = {operand};
  } else if (is_number(operand)) {
    found = files_anywhere(static_cast<std::uint32_t>(std::stoul(operand)));
    if (found.files.empty() && found.unread.empty()) {
      return "process " + operand + " left no file in " + places() +
             "; was it run with 'ringmain run --flight', and with the same RINGMAIN_FLIGHT_DIR?";
    }
  } else {
    return "there is no file, folder or process '" + operand + "'";
  }
  all.add(std::move(found));
  return "";
}

/// Fills `call`; returns a sentence for a wrong call.
std::string read_call(const Arguments& arguments, PostMortemCall& call) {
  call.json = arguments.has("--json");
  call.sinks = arguments.values("--sink");
  call.picture = arguments.value("--svg");
  if (call.json && call.picture == "-")
    return "--json and --svg - would both write to standard output; give the picture a file";
  if (const auto last = arguments.value("--last")) {
    const auto number = parse_number(*last, 0, 1e9);
    if (!number) return "--last is a number of events, and not '" + *last + "'";
    call.events = static_cast<std::size_t>(*number);
  }
  for (const std::string& sink : call.sinks) {
    const auto info = known_providers().check(registry::ProviderKind::sink, sink);
    if (!info) return info.error().message;
  }
  return "";
}

/// One file is read, and told to the person or the program. A file that there is no memory for does
/// not keep the others from it.
Result<flight::RingDump> read_and_tell(const PostMortemCall& call, const std::string& file,
                                       bool named) try {
  auto dump = flight::RingDump::read(
      file, named ? engine::flight::kAllThatIsRecorded : engine::flight::kRecordedInAFolder);
  if (!dump) return dump;
  if (call.picture) {
    std::string fault = write_whole(*call.picture, post_mortem_svg(dump.value(), call.drawn()));
    if (!fault.empty()) return Error{Error::Code::system, std::move(fault)};
  }
  if (!call.json && (!call.sinks.empty() || call.picture == "-")) return dump;
  const std::string told = call.json ? post_mortem_json(dump.value(), call.told())
                                     : post_mortem_text(dump.value(), call.told());
  std::fwrite(told.data(), 1, told.size(), stdout);
  return dump;
} catch (const std::bad_alloc&) {
  return Error{Error::Code::system, file + " cannot be read: there is not enough memory for it."};
}

int run(const Arguments& arguments) {
  PostMortemCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty())
    return wrong_usage("post-mortem", sentence);
  Found found;
  for (const std::string& operand : arguments.operands()) {
    if (const std::string sentence = find(operand, found); !sentence.empty())
      return failed(sentence);
  }
  if (arguments.operands().empty()) found = files_anywhere(0);
  int status = kDone;
  for (const std::string& sentence : found.unread) status = failed(sentence);
  if (found.files.empty() && found.unread.empty()) {
    return failed("no flight recorder has left a file in " + places() +
                  "; record with: ringmain run --flight 'collective.>,train.*' -- COMMAND");
  }
  if (call.picture && found.files.size() > 1) {
    return wrong_usage("post-mortem", "--svg draws one process, and here are the files of " +
                                          std::to_string(found.files.size()) + "; name one file");
  }
  std::vector<flight::RingDump> dumps;  // for sinks: what is only told is not kept
  for (const std::string& file : found.files) {
    auto dump = read_and_tell(call, file, found.named.contains(file));
    if (!dump) {
      status = failed(dump.error().message);
      continue;
    }
    if (!dump.value().file().damage.empty()) status = kFailed;
    if (!call.sinks.empty()) dumps.push_back(std::move(dump).value());
  }
  if (!call.sinks.empty()) {
    const std::string fault = post_mortem_to_sinks(dumps, call.sinks);
    if (!fault.empty()) status = failed(fault);
  }
  return status;
}

}  // namespace

const Verb& post_mortem_verb() {
  static const Option kOptions[] = {
      {"--json", "", "one line of JSON for each process"},
      {"--last", "EVENTS", "how many of each ring are shown: 20 unless said"},
      {"--svg", "FILE",
       "also a picture of one process: a row for each thread, the last 500 events of each ring;\n"
       "- in place of text. FILE's folder is made if it is missing"},
      {"--sink", "SINK",
       "give all events that no guard vetoed to a sink, such as json_lines:FILE, each publisher's\n"
       "in their order ('ringmain sort' makes one of all); may be given more than once"}};
  static const Verb kVerb{
      "post-mortem",
      "[FOLDER|PID|FILE]…",
      "what a process published last, also if it was killed",
      "Reads what 'ringmain run --flight' or Bus::record() left, of processes that live and of "
      "dead\n"
      "ones, without their help: each thread's last events, the operations that were open, and\n"
      "exactly how many were overwritten. Without an operand: all files in RINGMAIN_FLIGHT_DIR, "
      "or\n"
      "else in the user's runtime folder and /dev/shm.\n\n"
      "A process that ended by exit() or _exit() is dead and not closed, like one that was\n"
      "killed, unless its recording was ended in order before.\n\n"
      "exit status: 0; 1 where there is no file, one or a folder could not be read, or a file is\n"
      "damaged; 2 for a wrong call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
