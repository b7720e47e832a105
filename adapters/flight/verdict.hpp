// What is wrong with a job, who is to blame, and what cannot be said?
//
// A finding is one operation of one group on which the ranks differ or hang. Later ones of the same
// group that only follow from it are not told again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/flight/groups.hpp"

namespace ringmain::flight {

enum class FindingKind : std::uint8_t {
  not_joined,    // some never enqueued what others wait in
  not_started,   // enqueued everywhere, but started on some only, or on none
  not_finished,  // started, or enqueued, everywhere that is known, and not finished
  state,         // some have finished it and others have not
  operation,     // another operation
  size,
  type,           // of the elements
  transfer,       // a send without its receive, or the reverse
  transfer_size,  // the two sides of a transfer differ
  deadlock        // ranks wait for each other in several groups
};
[[nodiscard]] std::string_view to_string(FindingKind kind) noexcept;

struct Finding {
  FindingKind kind = FindingKind::not_joined;
  std::size_t group = 0;  // of Verdict::groups
  std::int64_t seq = -1;  // -1: of a transfer
  std::string operation;
  std::vector<std::int64_t> culprits;  // decided by majority, or by who is not there
  std::vector<std::int64_t> suspects;  // one of them, or all; nothing decides it
  std::vector<std::int64_t> held_up;   // as culprits, but they wait in another finding
  std::vector<std::int64_t> waiting;   // ranks that are in the operation
  std::int64_t since_ns = 0;           // time of day: the first of them enqueued it
  std::int64_t waited_ns = -1;         // at least; -1: not known
  std::string where;                   // in the program of a rank that waits or differs
  std::string sentence;
  bool timed_out = false;   // or failed: it was retired without an end
  bool certain = false;     // a hole or such an end, that no moment of dumping explains
  int consequence_of = -1;  // of Verdict::findings: its culprits wait there
};

struct Straggler {
  std::int64_t rank = 0;
  std::size_t last = 0;       // how often it came last
  std::size_t compared = 0;   // of so many operations
  double late_ms_median = 0;  // after the first rank that came
  double late_ms_max = 0;
  double clock_ms = 0;  // its clock against the others', as estimated; taken off
};

struct Verdict {
  std::vector<Group> groups;
  std::vector<std::int64_t> trimmed_to;  // of each group: all ranks' rings hold all from here on
  std::vector<Finding> findings;
  std::vector<std::string> undecided;  // sentences
  std::vector<std::string> notes;      // sentences: what is no fault, but may be of use
  std::vector<std::int64_t> missing;   // ranks without a readable file
  std::vector<Straggler> stragglers;   // the latest first
  bool clocks_compared = false;        // by the ends of operations
  std::size_t operations = 0;

  /// Ranks that the findings name and that wait for nobody themselves.
  [[nodiscard]] std::vector<std::int64_t> culprits() const;
};

struct JudgeOptions {
  double grace_s = 5;  // a shorter wait is no finding, where the files' times tell it
};

[[nodiscard]] Verdict judge(const Job& job, const JudgeOptions& options);

/// "rank 3", "ranks 0-2 and 7"
[[nodiscard]] std::string ranks_text(const std::vector<std::int64_t>& ranks);
/// "0-2,7"
[[nodiscard]] std::string ranks_short(const std::vector<std::int64_t>& ranks);

}  // namespace ringmain::flight
