// `ringmain door`: what a process that runs, or hangs, says of itself: its figures, its dumps, its
// Python stacks, what its NCCL operations wait for.
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <future>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/formats/json_text.hpp"

#include "cli/arguments.hpp"
#include "cli/door_client.hpp"
#include "cli/door_stalled.hpp"
#include "cli/plain_text.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

namespace fs = std::filesystem;

struct DoorCall {
  std::string word;                  // "": they are listed
  std::vector<std::string> targets;  // processes and sockets
  std::string folder;
  std::int64_t limit_ns = 0;
  bool all = false, json = false;
};

bool is_word(std::string_view operand) {
  return operand == "stats" || operand == "dump" || operand == "stacks" || operand == "stalled" ||
         operand == "who" || operand == "help";
}

bool is_number(const std::string& word) {
  return !word.empty() && word.size() <= 9 &&
         word.find_first_not_of("0123456789") == std::string::npos;
}

/// Fills `call`; returns a sentence for a wrong call.
std::string read_call(const Arguments& arguments, DoorCall& call) {
  call.json = arguments.has("--json");
  call.all = arguments.has("--all");
  call.folder = arguments.value("--folder").value_or("");
  const std::string limit = arguments.value("--timeout").value_or("15");
  const auto seconds = parse_number(limit, 0.001, 86400);
  if (!seconds) return "--timeout is a number of seconds up to 86400, and not '" + limit + "'";
  call.limit_ns = static_cast<std::int64_t>(*seconds * 1e9);
  if (!call.folder.empty()) call.folder = (fs::current_path() / call.folder).string();
  for (const std::string& operand : arguments.operands()) {
    if (!is_word(operand)) {
      if (!is_number(operand) && operand.find('/') == operand.npos) {
        return "'" + operand +
               "' is neither a word that doors answer (stats, dump, stacks, stalled, who, "
               "help) nor a process, nor a socket's path";
      }
      call.targets.push_back(operand);
    } else if (!call.word.empty() && call.word != operand) {
      return "one word at a time: '" + call.word + "' or '" + operand + "'";
    } else {
      call.word = operand;
    }
  }
  if (call.word.empty() && !call.targets.empty())
    return "say what is to be asked: stats, dump, stacks, stalled, who or help";
  if (call.all && !call.targets.empty()) return "--all asks all doors; name none beside it";
  return "";
}

std::string places(const std::string& folder) {
  std::string words;
  for (const std::string& one : door_places(folder)) words += (words.empty() ? "" : ", ") + one;
  return words;
}

/// Why has that process no door?
std::string no_door_of(const std::string& pid, const std::string& folder) {
  const bool gone = ::kill(static_cast<pid_t>(std::stoul(pid)), 0) != 0 && errno == ESRCH;
  if (gone) return "there is no process " + pid;
  if (errno == EPERM) {
    return "process " + pid +
           " is another user's; if it has a door, that lets in this user and root only";
  }
  return "process " + pid + " has no door in " + places(folder) +
         "; start it with 'ringmain run --door' or RINGMAIN_DOOR=1, and name its folder by "
         "--folder where it has another";
}

/// The doors that are meant; or a sentence.
std::string doors_meant(const DoorCall& call, std::vector<DoorAt>& doors) {
  const DoorsFound found = find_doors(call.folder);
  for (const std::string& sentence : found.unread) (void)failed(sentence);
  for (const std::string& target : call.targets) {
    if (!is_number(target)) {
      const fs::path path = fs::current_path() / target;
      doors.push_back({path.parent_path().string(), path.filename().string(), 0});
      continue;
    }
    const std::size_t before = doors.size();
    for (const DoorAt& one : found.doors) {
      if (std::to_string(one.pid) == target) doors.push_back(one);
    }
    errno = 0;
    if (doors.size() == before) return no_door_of(target, call.folder);
  }
  if (!call.targets.empty()) return "";
  doors = found.doors;
  if (doors.empty()) {
    return "there is no door in " + places(call.folder) +
           "; open one with: ringmain run --door -- COMMAND";
  }
  if (call.word.empty() || call.all || doors.size() == 1) return "";
  return "there are " + std::to_string(doors.size()) +
         " doors, which 'ringmain door' lists: name processes, or say --all";
}

/// The document's member as text that a terminal may be given, or "".
std::string member(const std::string& document, const char* key) {
  simdjson::dom::parser parser;
  simdjson::dom::element value;
  if (parser.parse(document).at_key(key).get(value) != simdjson::SUCCESS) return "";
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return plain_text(text, false);
  return plain_text(simdjson::minify(value), false);
}

void print_listed(const DoorAt& door, const DoorAnswer& answer) {
  if (!answer.fault.empty()) {
    std::printf("%7u  %s\n", door.pid, plain_text(answer.fault, false).c_str());
    return;
  }
  const std::string rank = member(answer.text, "rank");
  std::printf("%7s  %-10s %-15s  %s\n", member(answer.text, "pid").c_str(),
              (rank == "null" || rank.empty() ? "no rank" : "rank " + rank).c_str(),
              member(answer.text, "program").c_str(), plain_text(door.path(), false).c_str());
}

void add_json(formats::JsonText& json, const DoorAt& door, const DoorAnswer& answer, bool is_json) {
  json.open('{').key("pid").number(answer.pid != 0 ? answer.pid : static_cast<pid_t>(door.pid));
  json.key("socket").text(door.path());
  json.key("answer");
  if (!answer.fault.empty()) {
    json.null();
  } else {
    is_json ? json.json(answer.text.substr(0, answer.text.find_last_not_of('\n') + 1))
            : json.text(answer.text);
  }
  json.key("error");
  answer.fault.empty() ? json.null() : json.text(answer.fault);
  json.close('}');
}

/// What came of one question, for all doors.
class Asked {
 public:
  Asked(const DoorCall& call, std::string word, bool several)
      : call_(call), word_(std::move(word)), several_(several) {
    json_.open('{').key("doors").open('[');
  }

  void take(const DoorAt& door, DoorAnswer answer) {
    std::optional<StalledProcess> process;
    if (word_ == "stalled" && answer.fault.empty()) {
      process = read_stalled(answer.text);
      if (!process) answer.fault = "what " + door.path() + " answers is not what hangs";
    }
    (answer.fault.empty() ? is_answered_ : answer.is_told ? is_refused_ : is_silent_) = true;
    if (call_.json) {
      add_json(json_, door, answer, is_answered_in_json(word_));
    } else if (call_.word.empty()) {
      print_listed(door, answer);
    } else if (!answer.fault.empty()) {
      const std::string whose = several_ && answer.is_told ? door.path() + ": " : "";
      (void)failed(plain_text(whose + answer.fault, false));
    } else {
      const std::string text = plain_text(process ? in_words(*process) : answer.text, true);
      std::fwrite(text.data(), 1, text.size(), stdout);
      if (several_ && (process || !is_answered_in_json(word_))) std::printf("\n");
    }
    if (process) processes_.push_back(std::move(*process));
  }
  int end() {
    const bool judged = word_ == "stalled" && several_;
    const std::string waited_for = judged ? whom_they_wait_for(processes_, is_silent_) : "";
    // Of all, some follow no operations, as a launcher.
    const bool may_refuse = word_ == "stalled" && call_.all && is_answered_;
    const bool is_whole = !is_silent_ && (!is_refused_ || may_refuse);
    const int status = is_whole ? kDone : kFailed;
    if (!call_.json) {
      if (!waited_for.empty()) std::printf("%s\n", plain_text(waited_for, false).c_str());
      return status;
    }
    json_.close(']');
    if (word_ == "stalled") {
      json_.key("waited_for");
      waited_for.empty() ? json_.null() : json_.text(waited_for);
    }
    std::printf("%s\n", json_.close('}').str().c_str());
    return status;
  }

 private:
  const DoorCall& call_;
  const std::string word_;
  const bool several_;
  bool is_answered_ = false, is_refused_ = false, is_silent_ = false;  // by some door
  formats::JsonText json_;
  std::vector<StalledProcess> processes_;
};

/// Asks them side by side, so that one that hangs takes its time from no other; takes what they
/// answered in their order.
void ask_all(const std::vector<DoorAt>& doors, const std::string& word, std::int64_t limit_ns,
             Asked& asked) {
  constexpr std::size_t kAtOnce = 16;
  // In this thread where there is no other to be had.
  constexpr auto kHow = std::launch::async | std::launch::deferred;
  std::deque<std::future<DoorAnswer>> under_way;
  std::size_t next = 0;
  for (const DoorAt& door : doors) {
    for (; next < doors.size() && under_way.size() < kAtOnce; ++next) {
      under_way.push_back(std::async(
          kHow, [&one = doors[next], &word, limit_ns] { return ask_door(one, word, limit_ns); }));
    }
    asked.take(door, under_way.front().get());
    under_way.pop_front();
  }
}

int run(const Arguments& arguments) {
  DoorCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty())
    return wrong_usage("door", sentence);
  std::vector<DoorAt> doors;
  if (const std::string sentence = doors_meant(call, doors); !sentence.empty())
    return failed(sentence);
  const std::string word = call.word.empty() ? "who" : call.word;
  Asked asked(call, word, doors.size() > 1);
  ask_all(doors, word, call.limit_ns, asked);
  return asked.end();
}

}  // namespace

const Verb& door_verb() {
  static const Option kOptions[] = {
      {"--all", "", "ask all doors that answer"},
      {"--json", "", "one JSON object with a row for each door"},
      {"--folder", "FOLDER", "where the sockets are, if RINGMAIN_DOOR does not say it"},
      {"--timeout", "SECONDS", "how long each is waited for: 15 unless said"}};
  static const Verb kVerb{
      "door",
      "[stats|dump|stacks|stalled|who|help] [PID|SOCKET]…",
      "what a process that runs, or hangs, says of itself",
      "Asks processes that have a door, by 'ringmain run --door', RINGMAIN_DOOR=1 or\n"
      "ringmain::open_door(). Without a word, lists those that answer.\n\n"
      "  stats    its buses with all their figures, as JSON\n"
      "  dump     its flight recorders write their dumps; says which files, as JSON\n"
      "  stacks   the Python stacks of all its threads, also while one of them holds the GIL\n"
      "  stalled  what its NCCL operations wait for now, and of several processes whom they all\n"
      "           wait for; in a run with --source nccl\n"
      "  who      which process it is, as JSON\n"
      "  help     what doors answer\n\n"
      "With one door, or --all, no process need be named. A door lets in its own user and root.\n\n"
      "exit status: 0; 1 where there is no door, or one gave no answer (of 'stalled --all', where\n"
      "all follow nothing, as a launcher does); 2 for a wrong call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
