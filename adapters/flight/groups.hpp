// What did each rank do in each process group? The entries of all dumps, sorted by group and rank,
// as operations: what a batch holds is one operation, with the state of the entry that closes it.
//
// A group is its name and its members, since the names of sub-groups come again. Each rank's line
// knows from which operation on it is whole: rings overwrite their oldest entries.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "adapters/flight/job.hpp"

namespace ringmain::flight {

/// How far an operation had come on a rank when the dump was made.
enum class Phase : std::uint8_t {
  enqueued,
  started,
  gave_up,  // retired without an end: it failed or timed out
  over,     // it ended, the recorder does not say whether well
  finished
};
[[nodiscard]] std::string_view to_string(Phase phase) noexcept;
[[nodiscard]] constexpr bool is_open(Phase phase) noexcept {
  return phase < Phase::over;
}

struct Operation {
  std::int64_t seq = 0;
  std::uint32_t first = 0;  // of Dump::entries
  std::uint32_t last = 0;   // the entry whose state counts
  Phase phase = Phase::enqueued;
  [[nodiscard]] bool is_batch() const noexcept { return last != first; }
};

/// A send or receive on one rank.
struct Transfer {
  std::uint32_t entry = 0;    // of Dump::entries
  std::uint32_t closing = 0;  // the entry whose state counts, that of its batch
  std::int64_t from = 0;      // ranks of the job
  std::int64_t to = 0;
  Phase phase = Phase::enqueued;
  bool in_batch = false;  // with others: it is open as long as any of them
};

/// One rank in one group.
struct Line {
  std::int64_t rank = 0;
  std::uint32_t dump = 0;             // of Job::dumps
  std::vector<Operation> operations;  // by seq
  std::vector<Transfer> transfers;    // as recorded
  std::int64_t whole_from = 0;        // from this seq on, nothing was overwritten
  std::string blind;       // why its operations cannot be compared by number; "": they can
  bool uncounted = false;  // blind, and its operations do not say either whether they hang
  [[nodiscard]] const Operation* find(std::int64_t seq) const noexcept;
  [[nodiscard]] std::int64_t newest_seq() const noexcept;  // -1: none
};

struct Group {
  std::uint32_t name = 0;
  std::uint32_t desc = 0;
  std::vector<std::int64_t> members;
  bool members_told = false;          // by a dump, not inferred
  std::vector<Line> lines;            // by rank; of those that have a dump
  std::vector<std::int64_t> missing;  // members without a dump
  std::size_t unnamed_transfers = 0;  // sends and receives that do not say their peer
};

/// What a dump's recorder tells of an operation's state.
struct Tells {
  bool starts = false;      // it can say "started"
  bool ends = false;        // "retired" alone does not mean that it ended well
  bool torchcomms = false;  // one counter for all groups, "retired" when issued
  bool wrapped = false;     // it has overwritten entries
};
[[nodiscard]] Tells what_it_tells(const Dump& dump, const Texts& texts);

/// "dp (grad)", as sentences name it.
[[nodiscard]] std::string name_of(const Group& group, const Texts& texts);

[[nodiscard]] std::vector<Group> find_groups(const Job& job);

}  // namespace ringmain::flight
