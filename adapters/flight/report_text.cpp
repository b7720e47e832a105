#include <algorithm>
#include <cstdio>

#include "adapters/flight/report.hpp"

namespace ringmain::flight {
namespace {

constexpr std::size_t kStragglersShown = 5;

std::string counted(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

void append_findings(std::string& to, const Job& job, const Verdict& verdict) {
  std::size_t number = 0;
  for (const Finding& finding : verdict.findings) {
    to += std::to_string(++number) + ". " + std::string(to_string(finding.kind));
    if (finding.consequence_of >= 0) {
      to += ", which follows from " + std::to_string(finding.consequence_of + 1);
    }
    to += "\n   " + finding.sentence + ".\n";
    if (!finding.culprits.empty()) to += "   culprit: " + ranks_text(finding.culprits) + "\n";
    if (!finding.suspects.empty()) to += "   suspected: " + ranks_text(finding.suspects) + "\n";
    if (!finding.where.empty()) to += "   in the program: " + finding.where + "\n";
  }
  if (verdict.findings.empty()) {
    to += verdict.undecided.empty() ? "Nothing was found to be wrong.\n"
                                    : "Whether something is wrong cannot be decided.\n";
  }
  const auto culprits = verdict.culprits();
  if (!culprits.empty()) to += "First cause: " + ranks_text(culprits) + "\n";
  (void)job;
}

void append_stragglers(std::string& to, const Verdict& verdict) {
  if (verdict.stragglers.empty()) return;
  to += verdict.clocks_compared ? "\nLate comers (clocks compared by the ends of operations)\n"
                                : "\nLate comers (clocks taken as they are)\n";
  to += "  rank    came last   late, median    late, max    its clock\n";
  for (std::size_t i = 0; i < std::min(kStragglersShown, verdict.stragglers.size()); ++i) {
    const Straggler& one = verdict.stragglers[i];
    char line[160];
    std::snprintf(line, sizeof line, "  %-6lld %6zu/%-6zu %10.3f ms %10.3f ms %+9.3f ms\n",
                  static_cast<long long>(one.rank), one.last, one.compared, one.late_ms_median,
                  one.late_ms_max, one.clock_ms);
    to += line;
  }
}

}  // namespace

std::string report_text(const Job& job, const Verdict& verdict) {
  std::string made = counted(job.dumps.size(), "dump") + ", " +
                     counted(verdict.groups.size(), "group") + ", " +
                     counted(verdict.operations, "operation") + " compared\n\n";
  append_findings(made, job, verdict);
  for (const Unread& unread : job.unread) {
    made += "Not read: " + unread.file + ": " + unread.why + "\n";
  }
  if (!verdict.missing.empty()) {
    made += "Missing: the files of " + ranks_text(verdict.missing) +
            "; what is not known of them may change the verdict\n";
  }
  for (const std::string& sentence : verdict.undecided) made += "Undecided: " + sentence + "\n";
  for (const std::string& sentence : verdict.notes) made += "Note: " + sentence + "\n";
  if (!job.passed_over.empty()) {
    made +=
        "Note: " + counted(job.passed_over.size(), "file") +
        " of the folders passed over: no dumps, or rings of an earlier run or without operations\n";
  }
  append_stragglers(made, verdict);
  return made;
}

}  // namespace ringmain::flight
