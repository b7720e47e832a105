// `ringmain sort`: puts lines of events in order of time. In the files that it reads the lines of
// each publisher are in order, those of different publishers are not.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "adapters/formats/json_text.hpp"

#include "cli/sort_index.hpp"
#include "cli/sort_output.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

struct SortCall {
  std::vector<std::string> files;
  std::string output = "-";
  SortClock clock = SortClock::wall;
  bool leave_out = false;
};

/// Fills `call`; returns a sentence if that is not possible.
std::string read_call(const Arguments& arguments, SortCall& call) {
  call.files = arguments.operands();
  if (call.files.empty()) {
    return "sort wants a file: ringmain sort FILE…, or - for standard input";
  }
  if (std::count(call.files.begin(), call.files.end(), "-") > 1) {
    return "standard input can be read only once, and - was given more than once";
  }
  if (call.files.size() > LineIndex::kInputsMax) {
    return "sort takes at most " + with_commas(LineIndex::kInputsMax) + " files";
  }
  call.leave_out = arguments.has("--skip-torn");
  call.output = arguments.value("-o").value_or("-");
  if (call.output.empty()) return "-o wants a file: -o FILE";
  const auto clock = arguments.value("--clock").value_or("wall");
  if (clock != "wall" && clock != "monotonic") {
    return "--clock is wall or monotonic, and not '" + clock + "'" +
           did_you_mean(clock, {"wall", "monotonic"});
  }
  call.clock = clock == "wall" ? SortClock::wall : SortClock::monotonic;
  return "";
}

/// One descriptor for each file: as many as the system allows.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<Input> open_inputs(const std::vector<std::string>& files) {
  std::vector<Input> inputs;
  inputs.reserve(files.size());
  for (const std::string& file : files) {
    Input input(file);
    for (const Input& earlier : inputs) {
      if (input.regular() && earlier.same_file(input)) {
        throw CannotSort(file + " was given twice, also as " + earlier.name() + "; each file once");
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

struct SortResult {
  std::uint64_t bytes = 0;
  bool to_standard_output = false;
};

/// Throws CannotSort.
SortResult sort(const SortCall& call, LineIndex& index) {
  std::vector<Input> inputs = open_inputs(call.files);
  SortOutput output(call.output, inputs);
  for (Input& input : inputs) {
    if (!input.plain()) input.spool();
    index.add(input);
  }
  index.order(call.clock, inputs);
  SortResult result{.to_standard_output = output.is_standard_output()};
  index.each([&](const LineIndex::Line& line) {
    output.write(inputs[line.input].again(line.at, line.length));
    output.write("\n");
    result.bytes += line.length + 1;
  });
  output.finish();
  return result;
}

void print_json(std::FILE* to, const SortCall& call, const LineIndex& index,
                const SortResult& result) {
  formats::JsonText json;
  json.open('{').key("files").number(call.files.size());
  json.key("processes").number(index.processes()).key("lines").number(index.lines());
  json.key("bytes").number(result.bytes).key("left_out").number(index.left_out());
  json.key("output").text(call.output).close('}');
  std::fprintf(to, "%s\n", json.str().c_str());
}

int run(const Arguments& arguments) {
  SortCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty()) {
    return wrong_usage("sort", sentence);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report
  allow_descriptors();
  LineIndex index(call.leave_out);
  SortResult result;
  try {
    result = sort(call, index);
  } catch (const CannotSort& why) {
    return failed(why.what());
  } catch (const std::bad_alloc&) {
    return failed("there is not enough memory for an index of more than " +
                  with_commas(index.lines()) + " lines, 24 bytes each; sort fewer at a time");
  }
  if (arguments.has("--json")) {
    print_json(result.to_standard_output ? stderr : stdout, call, index, result);
  } else if (!arguments.has("--quiet") && !result.to_standard_output) {
    std::printf("%s of %s from %s: %s in %s\n", plural(index.lines(), "line").c_str(),
                index.processes() == 1 ? "1 process"
                                       : (with_commas(index.processes()) + " processes").c_str(),
                plural(call.files.size(), "file").c_str(), bytes_text(result.bytes).c_str(),
                call.output.c_str());
  }
  if (index.left_out() == 0) return kDone;
  return failed(index.left_out() == 1
                    ? "1 line was left out: " + index.first_left_out()
                    : with_commas(index.left_out()) + " lines were left out, the first of them " +
                          index.first_left_out());
}

}  // namespace

const Verb& sort_verb() {
  static const Option kOptions[] = {
      {"-o", "FILE",
       "write there, whole or not at all, in place of standard output; no file that is\n"
       "read. A new file is its owner's only (RINGMAIN_OUTPUT_MODE=0640 for another mode); its\n"
       "folder is made if it is missing"},
      {"--clock", "CLOCK",
       "between processes: wall, the time of day (the default), or monotonic, time_ns as\n"
       "it is, which is exact between processes of one host and means nothing else",
       "wall monotonic"},
      {"--skip-torn", "",
       "leave out lines that are torn or no events, say how many and which came first;\n"
       "without it the first of them is refused, and nothing is written"},
      {"--json", "", "the summary as one JSON object; on standard error if lines go to the output"},
      {"--quiet", "", "no summary: only what went wrong"}};
  static const Verb kVerb{
      "sort",
      "FILE…",
      "put lines of events in order of time",
      "Reads what json_lines sinks wrote (- is standard input; gzip is unpacked), one file or one\n"
      "of each rank, and writes every line, unchanged, in order: by time_ns within a process, by\n"
      "the time of day between processes, and as they came where that is the same. The clocks of\n"
      "each process stand in its first line, which must be in one of the files.\n"
      "Needs 24 bytes of memory a line, and room in TMPDIR for what comes through a pipe or is\n"
      "gzip, unpacked.\n\n"
      "exit status: 0; 1 where nothing could be written, or lines were left out; 2 for a wrong\n"
      "call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
