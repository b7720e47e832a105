// How does a dump become one of the other format, and the dumps of a job such as PyTorch's analyzer
// reads rightly?
//
// JSON and pickles of PyTorch differ in more than their bytes: what is unknown is 0 or None, the
// last numbers of a group are texts or numbers, no entries are no key or an empty list.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/flight/snapshot.hpp"
#include "adapters/flight/verdict.hpp"

namespace ringmain::flight {

/// Makes of a document what the format has for it. Fields that are not known stay.
void shape_for(Document& document, DumpFormat format);
[[nodiscard]] std::string write_document(const Document& document, DumpFormat format);

struct MergeOptions {
  std::string backend = "nccl";  // of the names that are written; PyTorch's analyzer knows few
  bool rename = true;            // to names that every release of the analyzer knows
};

struct Merged {
  std::size_t entries = 0;
  std::size_t trimmed = 0;   // not in all ranks' rings
  std::size_t later = 0;     // some dumps were made before it
  std::size_t left_out = 0;  // have no name that the analyzer knows
};

/// What all ranks' dumps together tell of each of them.
struct MergePlan {
  /// Of the transfers of one direction between two ranks.
  struct Direction {
    std::int64_t until = INT64_MAX;  // the last that both have; of a group with findings, the last
    bool wrapped = false;            // one of the two rings has, so numbers of theirs mean nothing
  };
  using Key = std::array<std::int64_t, 3>;
  /// Of each group of the verdict: what comes from here on was not there yet on all ranks, and that
  /// is no finding.
  std::vector<std::int64_t> until;
  std::map<Key, Direction> directions;  // by the group's number, the sender, the receiver
  const Group* first = nullptr;

  [[nodiscard]] static bool has_wrapped(const Dump& dump) noexcept;
  [[nodiscard]] static bool sends(const Job& job, const Dump& dump, const Transfer& transfer);

  [[nodiscard]] Direction of(const Group& group, const Transfer& transfer) const {
    const auto found = directions.find({&group - first, transfer.from, transfer.to});
    return found == directions.end() ? Direction{} : found->second;
  }
};
[[nodiscard]] MergePlan plan_merge(const Job& job, const Verdict& verdict);

/// Changes one rank's document so that the analyzer can compare it with the others': each group
/// from where all rings hold it, record ids from 0, groups with their members, names that it knows,
/// list tensors as one, sends and receives in groups of their two ranks. `dump`: of `job`.
Merged make_comparable(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
                       const MergePlan& plan, const MergeOptions& options);

}  // namespace ringmain::flight
