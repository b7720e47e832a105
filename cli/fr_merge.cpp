// `ringmain fr merge`: the dumps of a job, made comparable, as PyTorch's fr_trace wants them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "adapters/flight/convert.hpp"
#include "adapters/flight/json_reader.hpp"

#include "cli/fr_output.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

struct MergeCall {
  flight::JobOptions job;
  flight::MergeOptions merge;
  flight::JudgeOptions judging;
  std::string prefix;
  flight::DumpFormat format = flight::DumpFormat::pickle;
};

/// The prefix that PyTorch or torchcomms would write to; "" if the environment has none.
std::string prefix_of_environment() {
  for (const char* name : {"TORCHCOMM_FR_DUMP_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE",
                           "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string read_call(const Arguments& arguments, MergeCall& call) {
  if (std::string fault = read_job_options(arguments, call.job); !fault.empty()) return fault;
  call.prefix = arguments.value("-o").value_or(prefix_of_environment());
  if (call.prefix.empty()) return "it wants a prefix to write to: -o FOLDER/fr_rank_";
  call.merge.backend = arguments.value("--backend").value_or("nccl");
  if (call.merge.backend.empty() || call.merge.backend.find(':') != std::string::npos) {
    return "--backend is a name without a colon";
  }
  call.merge.rename = !arguments.has("--keep-names");
  if (std::string fault = read_grace(arguments, call.judging); !fault.empty()) return fault;
  const std::string format = arguments.value("--to").value_or("pickle");
  if (format != "pickle" && format != "json") {
    return "--to is json or pickle, and not '" + format + "'" +
           did_you_mean(format, {"json", "pickle"});
  }
  if (format == "json") call.format = flight::DumpFormat::json;
  return "";
}

/// Reads one dump again, whole, and writes it; returns a sentence if that failed.
std::string merge_one(const MergeCall& call, const flight::Job& job, std::size_t dump,
                      const flight::Verdict& verdict, const flight::MergePlan& plan,
                      flight::Merged& sum) {
  const std::string& file = job.dumps[dump].file;
  auto bytes = flight::read_dump_bytes(file);
  if (!bytes) return file + ": " + bytes.error().message;
  auto document = flight::read_document(std::move(bytes).value());
  if (!document) return file + ": " + document.error().message;
  flight::Kept kept;
  const auto again = flight::read_dump(document.value(), kept);
  if (!again || again.value().entries.size() != job.dumps[dump].entries.size()) {
    return file + " has changed while it was read";
  }
  flight::shape_for(document.value(), call.format);
  const flight::Merged merged =
      flight::make_comparable(document.value(), job, dump, verdict, plan, call.merge);
  sum.entries += merged.entries;
  sum.trimmed += merged.trimmed;
  sum.later += merged.later;
  sum.left_out += merged.left_out;
  // No suffix: PyTorch's analyzer takes all after the prefix for the rank.
  return write_whole(call.prefix + std::to_string(job.dumps[dump].rank),
                     flight::write_document(document.value(), call.format));
}

int run(const Arguments& arguments) {
  MergeCall call;
  if (const std::string sentence = read_call(arguments, call); !sentence.empty()) {
    return wrong_usage("fr merge", sentence);
  }
  if (std::find(call.job.paths.begin(), call.job.paths.end(), "-") != call.job.paths.end()) {
    return wrong_usage("fr merge", "it reads its files twice, so - is not possible");
  }
  const auto job = flight::read_job(call.job);
  if (!job) return nothing_judged(job.error().message);
  const flight::Verdict verdict = flight::judge(job.value(), call.judging);
  const flight::MergePlan plan = flight::plan_merge(job.value(), verdict);
  flight::Merged sum;
  for (std::size_t dump = 0; dump < job.value().dumps.size(); ++dump) {
    const std::string fault = merge_one(call, job.value(), dump, verdict, plan, sum);
    if (fault.empty()) continue;
    const std::string before = "; only the first " + with_commas(dump) + " of " +
                               plural(job.value().dumps.size(), "file") + " are written";
    return failed(fault + (dump == 0 ? "" : before));
  }
  if (!arguments.has("--quiet")) {
    std::printf(
        "%s with %s: %s not in all rings, %s that fr_trace cannot compare, %s that not all dumps "
        "had come to\n",
        plural(job.value().dumps.size(), "file").c_str(), plural(sum.entries, "operation").c_str(),
        with_commas(sum.trimmed).c_str(), with_commas(sum.left_out).c_str(),
        with_commas(sum.later).c_str());
  }
  for (const auto& unread : job.value().unread) (void)failed(unread.file + ": " + unread.why);
  return job.value().unread.empty() ? kDone : kFailed;
}

}  // namespace

const Verb& fr_merge_verb() {
  static const Option kOptions[] = {
      {"-o", "PREFIX",
       "write PREFIX0, PREFIX1, … (else TORCHCOMM_FR_DUMP_TEMP_FILE, TORCH_FR_DUMP_TEMP_FILE or\n"
       "TORCH_NCCL_DEBUG_INFO_TEMP_FILE is the prefix); their folder is made if it is missing"},
      {"--to", "FORMAT", "pickle (the default) or json", "pickle json"},
      {"--backend", "NAME", "what the names begin with (nccl)"},
      {"--keep-names", "", "leave the names of operations and their tensors as they are"},
      {"--grace", "SECONDS",
       "as for `ringmain fr analyze` (5): what some dumps were made too soon for is left out"},
      {"--prefix", "TEXT", "of a folder, only the files whose names begin with it"},
      {"--rank-from", "REGEX", "as for `ringmain fr analyze`"},
      {"--world-size", "N", "how many ranks the job has, where no dump tells"},
      {"--quiet", "", "no summary"}};
  static const Verb kVerb{"merge",
                          "FILE|FOLDER…",
                          "make the dumps of a job comparable, for PyTorch's fr_trace",
                          "Trims each group to what the rings of all ranks still hold, numbers the "
                          "records anew, names\n"
                          "the groups' members, and gives operations names, tensors and numbers "
                          "that the analyzer takes.\n"
                          "Sends and receives, those of batches too, lie in groups of their two "
                          "ranks. What it cannot\n"
                          "compare is left out, and counted.\n\n"
                          "exit status: 0; 1 where a file could not be read or written; 2 where "
                          "nothing could be read, or\n"
                          "for a wrong call.",
                          kOptions,
                          run};
  return kVerb;
}

}  // namespace ringmain::cli
