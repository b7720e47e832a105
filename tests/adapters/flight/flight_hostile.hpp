// What must hold of any bytes that are given as a dump? Used by the fuzz target and by a test that
// goes through its corpus.
#pragma once
#include <cstdlib>
#include <string>
#include <string_view>

#include "adapters/flight/convert.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/report.hpp"

namespace ringmain::flight {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Reads the bytes; true if they are a dump. Judges it as that of two ranks, and writes it again.
inline bool try_bytes(std::string_view bytes) {
  auto document = read_document(std::string(bytes));
  if (!document) {
    require(document.error().message.size() > 5);
    require(document.error().message.find('\n') == std::string::npos);
    return false;
  }
  Job job;
  auto dump = read_dump(document.value(), job.kept);
  if (!dump) {
    require(dump.error().message.size() > 5);
    return false;
  }
  job.dumps = {dump.value(), dump.value()};
  job.dumps[0].rank = 0;
  job.dumps[1].rank = 1;
  if (!job.dumps[1].entries.empty()) job.dumps[1].entries.pop_back();
  const Verdict verdict = judge(job, {});
  require(!report_text(job, verdict).empty() && !report_svg(job, verdict).empty());
  require(read_json(report_json(job, verdict)).has_value());
  for (const DumpFormat format : {DumpFormat::json, DumpFormat::pickle}) {
    shape_for(document.value(), format);
    const std::string written = write_document(document.value(), format);
    auto again = read_document(written);
    require(again.has_value());
    Kept kept;
    const auto same = read_dump(again.value(), kept);
    require(same.has_value() && same.value().entries.size() == dump.value().entries.size());
    require(write_document(again.value(), format) == written);
  }
  (void)make_comparable(document.value(), job, 0, verdict, plan_merge(job, verdict), {});
  return true;
}

}  // namespace ringmain::flight
