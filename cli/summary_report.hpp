// What is told of a summary, to a person, a program or in a picture: rows in the order in which
// they are read, losses, and what did not end.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/summary_table.hpp"

namespace ringmain::cli {

/// What rows are told apart by, besides channel and operation.
struct SummaryBy {
  bool rank = false, step = false;
};

/// A line that was left out.
struct LeftOut {
  std::string file;
  std::uint64_t line = 0;
  std::string why;  // follows "it is"
};

/// What was read.
struct SummaryInput {
  std::vector<std::string> files;
  std::vector<std::string> faults;  // a sentence for each file that could not be read to its end
  std::uint64_t left_out = 0;
  std::vector<LeftOut> first_left_out;  // a few
};

/// Times or sizes under one key.
struct SummaryMeasure {
  std::string key;
  Sketch values;
  /// Of a time that several ranks have: the rank with the highest median, and the lowest median.
  struct Slowest {
    std::int64_t rank = 0;
    std::uint64_t median = 0, least_median = 0;
  };
  std::optional<Slowest> slowest{};
  [[nodiscard]] bool is_time() const { return key.ends_with("_ns"); }
};

struct SummaryRow {
  std::uint32_t kind = 0;
  std::optional<std::int64_t> rank{};              // by rank: nullopt where no line says it
  std::optional<std::uint64_t> step{}, step_to{};  // by step: nullopt outside of one
  std::uint64_t events = 0;
  std::vector<SummaryMeasure> measures{};  // times first, and of those what an operation took
};

struct SummaryLoss {
  std::string channel;
  std::optional<std::int64_t> rank;
  std::uint64_t publishers = 0, missing = 0, backward = 0;
};

struct SummaryReport {
  const SummaryTable& table;
  const SummaryInput& input;
  SummaryBy by;
  std::vector<SummaryRow> rows{};     // by channel; the longest time in all first
  std::vector<SummaryLoss> losses{};  // where there are any
  std::vector<SummaryOpen> open{};    // of processes in which others ended
  std::uint64_t publishers = 0, missing = 0, backward = 0;
  std::uint64_t ranks = 0;  // that are known
};

[[nodiscard]] SummaryReport make_report(const SummaryTable& table, const SummaryInput& input,
                                        SummaryBy by);

/// For a person; `top`: operations of each channel, 0 for all.
[[nodiscard]] std::string summary_text(const SummaryReport& report, std::size_t top);
/// One JSON object with all rows.
[[nodiscard]] std::string summary_json(const SummaryReport& report);
/// A picture (SVG) of a report by rank: how long operations took, on one logarithmic axis, a bar
/// for each rank.
[[nodiscard]] std::string summary_svg(const SummaryReport& report, std::size_t top);

}  // namespace ringmain::cli
