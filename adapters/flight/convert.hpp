// How does a dump become one of the other format, and the dumps of a job such as PyTorch's analyzer
// reads rightly?
//
// JSON and pickles of PyTorch differ in more than their bytes: what is unknown is 0 or None, the
// last numbers of a group are texts or numbers, no entries are no key or an empty list.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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
  std::size_t left_out = 0;  // have no name that the analyzer knows
};

/// Changes one rank's document so that the analyzer can compare it with the others': each group
/// from where all rings hold it, record ids from 0, groups with their members, names that it knows,
/// list tensors as one, point-to-point numbers apart from those of collectives. `dump`: of `job`.
Merged make_comparable(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
                       const MergeOptions& options);

}  // namespace ringmain::flight
