// `ringmain fr analyze`: who hangs in which collective, since when, and for whom?
#include <cstdio>
#include <string>

#include "adapters/flight/report.hpp"

#include "cli/fr_output.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

int run(const Arguments& arguments) {
  flight::JobOptions options;
  flight::JudgeOptions judging;
  if (const std::string sentence = read_job_options(arguments, options); !sentence.empty()) {
    return wrong_usage("fr analyze", sentence);
  }
  if (const std::string sentence = read_grace(arguments, judging); !sentence.empty()) {
    return wrong_usage("fr analyze", sentence);
  }
  const auto picture = arguments.value("--svg");
  if (arguments.has("--json") && picture == "-") {
    return wrong_usage("fr analyze",
                       "--json and --svg - would both write to standard output; give the picture a "
                       "file");
  }
  const auto job = flight::read_job(options);
  if (!job) return nothing_judged(job.error().message);
  const flight::Verdict verdict = flight::judge(job.value(), judging);
  if (picture) {
    const std::string fault = write_whole(*picture, flight::report_svg(job.value(), verdict));
    if (!fault.empty()) return nothing_judged(fault);
  }
  const std::string report = arguments.has("--json") ? flight::report_json(job.value(), verdict)
                                                     : flight::report_text(job.value(), verdict);
  if (picture != "-") std::fwrite(report.data(), 1, report.size(), stdout);
  if (!verdict.findings.empty()) return kFailed;
  const bool whole =
      job.value().unread.empty() && verdict.missing.empty() && verdict.undecided.empty();
  if (whole) return kDone;
  if (!job.value().unread.empty()) {
    const auto& unread = job.value().unread.front();
    return nothing_judged(unread.file + " was not read: " + unread.why);
  }
  return nothing_judged(verdict.missing.empty()
                            ? "not everything could be judged: " + verdict.undecided.front()
                            : "nothing is wrong as far as can be seen, but the files of " +
                                  flight::ranks_text(verdict.missing) + " are missing");
}

}  // namespace

const Verb& fr_analyze_verb() {
  static const Option kOptions[] = {
      {"--json", "", "the verdict as one JSON object"},
      {"--svg", "FILE",
       "also a picture: rows of ranks, columns of operations; - in place of text. FILE's folder "
       "is\n"
       "made if it is missing"},
      {"--grace", "SECONDS",
       "a shorter wait is no finding (5), where the times of the files tell how long it was"},
      {"--prefix", "TEXT", "of a folder, only the files whose names begin with it"},
      {"--rank-from", "REGEX",
       "where a dump does not say its rank: the first group of what this finds in its name, in\n"
       "place of the last number of the name"},
      {"--world-size", "N", "how many ranks the job has, where no dump tells"}};
  static const Verb kVerb{
      "analyze",
      "FILE|FOLDER…",
      "say which ranks hang or differ, in which operation, since when",
      "Reads one dump of each rank and compares what all their rings hold. Names who never "
      "enqueued\n"
      "an operation, who has not started it, who has not finished it, who called another one or "
      "with\n"
      "other sizes or types; who waits meanwhile, and since when; and what it cannot decide, "
      "because\n"
      "which file is missing.\n\n"
      "exit status: 0 where nothing is wrong; 1 with a finding; 2 where there is none but not\n"
      "everything could be read or judged, or for a wrong call.",
      kOptions,
      run};
  return kVerb;
}

}  // namespace ringmain::cli
