#include "cli/summary_report.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ringmain::cli {
namespace {

using Rank = std::optional<std::int64_t>;
using Step = std::optional<std::uint64_t>;
using Ranks = std::map<Rank, SummaryCell>;

/// What an operation took, before its other times; then sizes.
std::size_t order_of(std::string_view key) {
  constexpr std::array<std::string_view, 4> kTook = {"duration_ns", "took_ns", "elapsed_ns",
                                                     "since_issued_ns"};
  const auto found = std::find(kTook.begin(), kTook.end(), key);
  if (found != kTook.end()) return static_cast<std::size_t>(found - kTook.begin());
  return key.ends_with("_ns") ? kTook.size() : kTook.size() + 1;
}

std::optional<SummaryMeasure::Slowest> slowest_of(const Ranks& ranks, std::uint32_t key,
                                                  unsigned coarser) {
  std::optional<SummaryMeasure::Slowest> slowest;
  std::size_t heard = 0;
  for (const auto& [rank, cell] : ranks) {
    for (const auto& [number, values] : cell.measures) {
      if (number != key || !rank) continue;
      const std::uint64_t median = values.quantile(0.5, coarser);
      ++heard;
      if (!slowest) slowest = {*rank, median, median};
      if (median > slowest->median) {
        slowest->rank = *rank;
        slowest->median = median;
      }
      slowest->least_median = std::min(slowest->least_median, median);
    }
  }
  return heard > 1 ? slowest : std::nullopt;
}

SummaryRow row_of(const SummaryTable& table, std::uint32_t kind, Step step, const SummaryCell& cell,
                  const Ranks* ranks) {
  SummaryRow row{.kind = kind, .step = step, .events = cell.events};
  if (step) row.step_to = *step + (table.step_width() - 1);
  for (const auto& [key, values] : cell.measures) {
    SummaryMeasure measure{.key = table.keys()[key], .values = values};
    if (ranks != nullptr && measure.is_time()) {
      measure.slowest = slowest_of(*ranks, key, table.coarser());
    }
    row.measures.push_back(std::move(measure));
  }
  std::sort(row.measures.begin(), row.measures.end(), [](const auto& a, const auto& b) {
    return std::pair(order_of(a.key), a.key) < std::pair(order_of(b.key), b.key);
  });
  return row;
}

std::vector<SummaryRow> rows_of(const SummaryTable& table, SummaryBy by) {
  std::map<std::pair<std::uint32_t, Step>, Ranks> all;
  for (const auto& [place, cell] : table.cells()) {
    const bool told = by.step && place.step != SummaryTable::kNoStep;
    const Step step = told ? Step{place.step} : Step{};
    all[{place.kind, step}][table.processes()[place.process].rank].add(cell);
  }
  std::vector<SummaryRow> rows;
  for (const auto& [where, ranks] : all) {
    if (by.rank) {
      for (const auto& [rank, cell] : ranks) {
        rows.push_back(row_of(table, where.first, where.second, cell, nullptr));
        rows.back().rank = rank;
      }
      continue;
    }
    SummaryCell sum;
    for (const auto& [rank, cell] : ranks) sum.add(cell);
    rows.push_back(row_of(table, where.first, where.second, sum, &ranks));
  }
  return rows;
}

std::uint64_t took_of(const SummaryRow& row) {
  return row.measures.empty() || !row.measures.front().is_time()
             ? 0
             : row.measures.front().values.sum();
}

/// By channel; in it the operation that took longest in all, then by rank and step.
void sort_rows(std::vector<SummaryRow>& rows, const SummaryTable& table) {
  std::map<std::uint32_t, std::pair<double, std::uint64_t>> weights;
  for (const SummaryRow& row : rows) {
    auto& [took, events] = weights[row.kind];
    took += static_cast<double>(took_of(row));
    events += row.events;
  }
  std::sort(rows.begin(), rows.end(), [&](const SummaryRow& a, const SummaryRow& b) {
    const auto& kinds = table.kinds();
    const auto key = [&](const SummaryRow& row, const SummaryRow& other) {
      return std::tuple(std::string_view(kinds[row.kind].channel), weights[other.kind],
                        std::string_view(kinds[row.kind].operation), row.rank, row.step);
    };
    return key(a, b) < key(b, a);  // heavier ones first
  });
}

void add_losses(SummaryReport& report) {
  std::map<std::pair<std::string, Rank>, SummaryLoss> losses;
  for (const SummarySequence& one : report.table.sequences()) {
    ++report.publishers;
    report.missing += one.missing();
    report.backward += one.backward;
    const std::string& channel = report.table.kinds()[one.kind].channel;
    const Rank rank = report.table.processes()[one.process].rank;
    SummaryLoss& loss = losses[{channel, rank}];
    loss.channel = channel;
    loss.rank = rank;
    ++loss.publishers;
    loss.missing += one.missing();
    loss.backward += one.backward;
  }
  for (auto& [where, loss] : losses) {
    if (loss.missing > 0 || loss.backward > 0) report.losses.push_back(std::move(loss));
  }
}

/// Where no operation's end is in the files, they say nothing of what did not end.
void add_open(SummaryReport& report) {
  std::set<std::uint32_t> ending;
  for (const auto& [place, cell] : report.table.cells()) {
    const std::string& channel = report.table.kinds()[place.kind].channel;
    if (channel == "collective.completed" || channel == "collective.failed") {
      ending.insert(place.process);
    }
  }
  for (const SummaryOpen& one : report.table.open()) {
    if (ending.contains(one.process)) report.open.push_back(one);
  }
}

}  // namespace

SummaryReport make_report(const SummaryTable& table, const SummaryInput& input, SummaryBy by) {
  SummaryReport report{.table = table, .input = input, .by = by};
  report.rows = rows_of(table, by);
  sort_rows(report.rows, table);
  add_losses(report);
  add_open(report);
  std::set<std::int64_t> ranks;
  for (const SummaryProcess& process : table.processes()) {
    if (process.rank) ranks.insert(*process.rank);
  }
  report.ranks = ranks.size();
  return report;
}

}  // namespace ringmain::cli
