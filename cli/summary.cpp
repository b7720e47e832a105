// `ringmain summary`: what is in the lines that json_lines sinks wrote? How often, how long, how
// much, by channel and operation, rank and step; and what is missing.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "adapters/sources/replay/kineto_bytes.hpp"

#include "cli/each_line.hpp"
#include "cli/fr_output.hpp"
#include "cli/summary_report.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

struct SummaryCall {
  std::vector<std::string> files;
  SummaryBy by;
  std::optional<std::string> picture;
  std::size_t top = 10;
  bool json = false;
};

std::string read_by(const std::string& words, SummaryBy& by) {
  std::size_t from = 0;
  while (from <= words.size()) {
    const std::size_t comma = std::min(words.find(',', from), words.size());
    const std::string word = words.substr(from, comma - from);
    if (word == "rank") {
      by.rank = true;
    } else if (word == "step") {
      by.step = true;
    } else {
      return "--by is rank, step, or both: rank,step, and not '" + word + "'" +
             did_you_mean(word, {"rank", "step"});
    }
    from = comma + 1;
  }
  return "";
}

/// Fills `call`; returns a sentence if that is not possible.
std::string read_call(const Arguments& arguments, SummaryCall& call) {
  call.files = arguments.operands();
  if (call.files.empty()) {
    return "summary wants a file: ringmain summary FILE…, or - for standard input";
  }
  if (std::count(call.files.begin(), call.files.end(), "-") > 1) {
    return "standard input can be read only once, and - was given more than once";
  }
  for (const std::string& words : arguments.values("--by")) {
    if (const std::string sentence = read_by(words, call.by); !sentence.empty()) return sentence;
  }
  if (const auto top = arguments.value("--top")) {
    const auto number = parse_number(*top, 0, 1e9);
    if (!number || *number != static_cast<double>(static_cast<std::size_t>(*number))) {
      return "--top is a number of operations, 0 for all, and not '" + *top + "'";
    }
    call.top = static_cast<std::size_t>(*number);
  }
  call.json = arguments.has("--json");
  call.picture = arguments.value("--svg");
  if (call.picture && call.picture->empty()) return "--svg wants a file: --svg FILE";
  if (call.json && call.picture == "-") {
    return "--json and --svg - would both write to standard output; give the picture a file";
  }
  return "";
}

/// "" if all files differ; else a sentence: lines that are read twice would be counted twice.
std::string given_twice(const std::vector<std::string>& files) {
  std::vector<std::pair<struct stat, const std::string*>> seen;
  for (const std::string& file : files) {
    struct stat status {};
    const bool there =
        file == "-" ? ::fstat(STDIN_FILENO, &status) == 0 : ::stat(file.c_str(), &status) == 0;
    if (!there || !S_ISREG(status.st_mode)) continue;
    for (const auto& [earlier, name] : seen) {
      if (earlier.st_dev == status.st_dev && earlier.st_ino == status.st_ino) {
        return file + " was given twice, also as " + *name + "; each file once";
      }
    }
    seen.emplace_back(status, &file);
  }
  return "";
}

/// Reads files of lines into a table, one after the other.
class Reading {
 public:
  Reading(SummaryTable& table, SummaryInput& input) : table_(table), input_(input) {}

  /// All of `file`; returns a sentence if it could not be read to its end.
  std::string read(const std::string& file) {
    const std::string name = file == "-" ? "standard input" : file;
    struct stat status {};
    if (file != "-" && ::stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      return name + " cannot be read: it is a folder; name the files in it";
    }
    auto opened = replay::KinetoBytes::open(file, {}, false);
    if (!opened) return in_one_clause(opened.error().message);
    replay::KinetoBytes& bytes = opened.value();
    std::string fault;
    ProgressLine progress(true);
    each_line(
        SummaryReader::padding(),
        [&](char* into, std::size_t most) -> std::size_t {
          const auto got = bytes.read({into, most});
          if (!got) fault = in_one_clause(got.error().message);
          if (bytes.size() > 0) {
            progress.show(name,
                          static_cast<double>(bytes.position()) / static_cast<double>(bytes.size()),
                          "");
          }
          return got ? got.value() : 0;
        },
        [&](const LinePlace& place, std::string_view line, bool ended) {
          if (!is_blank(line)) take(name, place, line, ended);
        },
        [&](const LinePlace& place) { leave_out(name, place, "longer than 64 MiB"); });
    return fault;
  }

 private:
  static constexpr std::size_t kNamed = 10;

  void take(const std::string& name, const LinePlace& place, std::string_view line, bool ended) {
    if (reader_.read(line, line_)) {
      table_.add(line_);
    } else {
      leave_out(name, place, ended ? reader_.fault() : kTorn);
    }
  }
  void leave_out(const std::string& name, const LinePlace& place, std::string_view why) {
    ++input_.left_out;
    if (input_.first_left_out.size() < kNamed) {
      input_.first_left_out.push_back({name, place.number, std::string(why)});
    }
  }

  SummaryTable& table_;
  SummaryInput& input_;
  SummaryReader reader_;
  SummaryLine line_;
};

/// What went wrong, on standard error.
int status_of(const SummaryInput& input) {
  int status = kDone;
  for (const std::string& fault : input.faults) status = failed(fault);
  for (const LeftOut& one : input.first_left_out) {
    status =
        failed(one.file + ", line " + std::to_string(one.line) + ": left out: it is " + one.why);
  }
  if (input.left_out > input.first_left_out.size()) {
    status = failed(with_commas(input.left_out) + " lines were left out in all");
  }
  return status;
}

int run(const Arguments& arguments) {
  SummaryCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty()) {
    return wrong_usage("summary", sentence);
  }
  if (const std::string sentence = given_twice(call.files); !sentence.empty()) {
    return failed(sentence);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a picture that may not grow is an error to report
  SummaryTable table(call.by.step);
  SummaryInput input;
  std::string told, fault;
  try {
    Reading reading(table, input);
    for (const std::string& file : call.files) {
      const std::string why = reading.read(file);
      if (!why.empty()) input.faults.push_back(why);
      input.files.push_back(file);
    }
    const SummaryReport report = make_report(table, input, call.by);
    if (call.picture) {
      const SummaryReport by_rank = make_report(table, input, {.rank = true});
      fault = write_whole(*call.picture, summary_svg(by_rank, call.top));
    }
    if (call.json) {
      told = summary_json(report);
    } else if (call.picture != "-") {
      told = summary_text(report, call.top);
    }
  } catch (const std::bad_alloc&) {
    return failed("there is not enough memory for a summary of these files");
  }
  const bool nothing_read = table.events() == 0 && input.faults.size() == call.files.size();
  if (!nothing_read) std::fwrite(told.data(), 1, told.size(), stdout);
  const int status = status_of(input);
  return fault.empty() ? status : failed(fault);
}

}  // namespace

const Verb& summary_verb() {
  static const Option kOptions[] = {
      {"--by", "WHAT",
       "tell rows apart by rank, by step, or by rank,step; without it ranks are told together,\n"
       "with the slowest of them, and steps not at all",
       "rank step"},
      {"--top", "N",
       "in text and picture, of each channel the N operations that took longest in\n"
       "all (10); 0 for all. --json has all"},
      {"--json", "", "the summary as one JSON object"},
      {"--svg", "FILE",
       "also a picture: how long operations took, on a logarithmic axis, with a bar for each\n"
       "rank; - in place of text. FILE's folder is made if it is missing"}};
  static const Verb kVerb{
      "summary",
      "FILE…",
      "how often, how long and how much, from lines of events",
      "Reads what json_lines sinks wrote (- is standard input; gzip is unpacked), one file or one\n"
      "of each rank, once and in order, and tells for each channel and operation how many events\n"
      "there are, their times and sizes (median, 90 and 99 of a hundred, the most), which rank is\n"
      "the slowest, which events are missing, and which operations were issued and did not end.\n"
      "Lines that are torn or no events are left out, named and counted. Memory is bounded,\n"
      "however long the files are.\n\n"
      "exit status: 0; 1 where a file could not be read to its end, or lines were left out; 2 for\n"
      "a wrong call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
