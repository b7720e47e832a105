// What the parts of the judgement share: the job, its groups, when each dump was made, and how a
// finding is told.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/flight/tensors.hpp"
#include "adapters/flight/verdict.hpp"

namespace ringmain::flight {

/// After a sentence on what was retired without an end: dumps do not tell which of the two it was.
inline constexpr std::string_view kGaveUp = "; it failed or timed out";

/// Threads: one at a time. Lives for one judge().
class Judging {
 public:
  Judging(const Job& judged, const JudgeOptions& options, Verdict& to);

  const Job& job;
  Verdict& verdict;
  Elements elements;
  std::vector<std::int64_t> written_ns;  // of each dump: when it was made; 0: not known
  std::int64_t newest_ns = 0;            // the newest stamp of all dumps

  [[nodiscard]] const Entry& entry(const Line& line, std::uint32_t at) const {
    return job.dumps[line.dump].entries[at];
  }
  [[nodiscard]] const Entry& entry(const Line& line, const Operation& operation) const {
    return entry(line, operation.first);
  }
  [[nodiscard]] std::string_view text(std::uint32_t number) const {
    return job.kept.texts.of(number);
  }
  /// Was this rank's dump made so long after `since_ns` that what it lacks is missing, and not just
  /// not there yet? True where nothing tells when it was made.
  [[nodiscard]] bool made_after(const Line& line, std::int64_t since_ns) const;
  /// The same where the time of its dump is known.
  [[nodiscard]] bool surely_made_after(const Line& line, std::int64_t since_ns) const {
    return written_ns[line.dump] != 0 && since_ns != 0 && made_after(line, since_ns);
  }
  /// "all_reduce #7 of dp (grad)"
  [[nodiscard]] std::string title(const Group& group, std::int64_t seq,
                                  std::string_view name) const;
  [[nodiscard]] std::string name_of_batch(const Line& line, const Operation& operation) const;
  /// " since 2026-01-01T00:00:00.000Z, for at least 600 s"
  [[nodiscard]] std::string since_text(const Finding& finding) const;
  /// What a rank did last: ". Its last operation is …"
  [[nodiscard]] std::string last_of(const Line& line) const;
  /// Fills `since_ns`, `waited_ns` and `where` from the ranks that wait.
  void time(Finding& finding, const Line& line, const Entry& entry) const;
  void tell(Finding finding) { verdict.findings.push_back(std::move(finding)); }
  void undecided(std::string sentence);
  void note(std::string sentence);

 private:
  const std::int64_t grace_ns_;
};

/// The collectives of one group.
void judge_collectives(Judging& judging, std::size_t group);
/// The sends and receives of one group.
void judge_transfers(Judging& judging, std::size_t group);
/// Of findings whose culprits wait elsewhere: where; and who waits in a circle.
void judge_waits(Judging& judging);
void rank_stragglers(Judging& judging);

/// An operation as several ranks have it.
struct Present {
  const Line* line = nullptr;
  const Operation* operation = nullptr;
};
/// Compares operation, sizes and types. True if the operations differ, after which numbers mean
/// nothing.
[[nodiscard]] bool judge_mismatch(Judging& judging, const Group& group,
                                  const std::vector<Present>& present, bool all_there);

}  // namespace ringmain::flight
