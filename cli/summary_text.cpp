#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "cli/summary_report.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

constexpr std::size_t kName = 32, kCount = 10, kOf = 13, kNumber = 9;
constexpr std::size_t kProcesses = 16, kLosses = 16, kOpen = 8;

std::string right(std::string_view text, std::size_t width) {
  return text.size() >= width ? " " + std::string(text)
                              : std::string(width - text.size(), ' ') + std::string(text);
}

std::string rank_words(const std::optional<std::int64_t>& rank) {
  return rank ? "rank " + std::to_string(*rank) : "no rank";
}

std::string without_end(std::string_view key, std::string_view end) {
  return std::string(key.substr(0, key.size() - end.size()));
}

class Text {
 public:
  Text(const SummaryReport& report, std::size_t top) : report_(report), top_(top) {}

  std::string write() {
    head();
    rows();
    open();
    losses();
    limits();
    return std::move(text_);
  }

 private:
  void line(const std::string& words) { (text_ += words) += '\n'; }

  void head() {
    const SummaryTable& table = report_.table;
    line(plural(report_.input.files.size(), "file") + ", " + plural(table.events(), "event") +
         " of " + with_commas(table.processes().size()) +
         (table.processes().size() == 1 ? " process" : " processes") +
         (report_.ranks > 1 ? " in " + with_commas(report_.ranks) + " ranks" : ""));
    std::size_t shown_now = 0;
    for (const SummaryProcess& one : table.processes()) {
      if (++shown_now > kProcesses) {
        line("  … and " + with_commas(table.processes().size() - kProcesses) + " more");
        break;
      }
      const double took = static_cast<double>(one.last_ns) - static_cast<double>(one.first_ns);
      std::string who = one.to_realtime_ns
                            ? one.program + " on " + one.host +
                                  (one.pid ? ", pid " + std::to_string(*one.pid) : "")
                            : "origin " + one.origin + ", whose first line is in no file";
      line("  " + in_columns(rank_words(one.rank), 9) + shown(who) + ": " +
           plural(one.events, "event") + " in " + duration_text(took));
    }
  }

  void rows() {
    if (report_.rows.empty()) return;
    line("");
    line(in_columns("channel", kName) + right("events", kCount) + "  " + in_columns("of", kOf) +
         right("n", kCount) + right("median", kNumber) + right("p90", kNumber) +
         right("p99", kNumber) + right("max", kNumber) + right("total", kNumber) +
         (report_.by.rank || report_.ranks < 2 ? "" : "  slowest rank: its median"));
    for (std::size_t i = 0; i < report_.rows.size();) i = channel(i);
    line("");
    char error[96];
    std::snprintf(error, sizeof error,
                  "Medians and percentiles are within %.1f %%; n, max and total are exact.",
                  100 * Sketch::error(report_.table.coarser()));
    line(error);
    const auto has_step = [](const SummaryRow& row) { return row.step.has_value(); };
    if (report_.by.step && std::none_of(report_.rows.begin(), report_.rows.end(), has_step)) {
      line("No event says its step: nothing in these runs published train.step.");
    }
    if (report_.by.step && report_.table.step_width() > 1) {
      line(with_commas(report_.table.step_width()) +
           " steps are told together, because there are too many to tell apart.");
    }
  }

  /// All rows of the channel that begins at `from`; returns where the next one begins.
  std::size_t channel(std::size_t from) {
    const auto& kinds = report_.table.kinds();
    const std::string& name = kinds[report_.rows[from].kind].channel;
    std::size_t to = from;
    std::uint64_t events = 0;
    for (; to < report_.rows.size() && kinds[report_.rows[to].kind].channel == name; ++to) {
      events += report_.rows[to].events;
    }
    line(in_columns(shown(name), kName) + right(with_commas(events), kCount));
    std::set<std::uint32_t> told, left;
    std::uint64_t left_events = 0;
    for (std::size_t i = from; i < to; ++i) {
      const SummaryRow& one = report_.rows[i];
      const bool enough = top_ > 0 && told.size() >= top_ && !told.contains(one.kind);
      (enough ? left : told).insert(one.kind);
      if (enough) {
        left_events += one.events;
      } else {
        row(one);
      }
    }
    if (!left.empty()) {
      line("  … and " + plural(left.size(), "operation") + " more, " +
           plural(left_events, "event") + " (--top 0 tells all)");
    }
    return to;
  }

  [[nodiscard]] std::string name_of(const SummaryRow& row) const {
    std::string name = shown(report_.table.kinds()[row.kind].operation);
    std::string more;
    if (report_.by.rank) more += " " + rank_words(row.rank);
    if (report_.by.step && row.step) {
      more += " step " + std::to_string(*row.step);
      if (*row.step_to != *row.step) more += "-" + std::to_string(*row.step_to);
    }
    if (more.size() + 8 > kName) return "  " + name + more;
    std::string cut = in_columns(name, kName - 2 - more.size());
    if (more.empty()) return "  " + cut;
    cut.resize(cut.find_last_not_of(' ') + 1);
    return "  " + cut + (cut.empty() ? more.substr(1) : more);
  }

  void row(const SummaryRow& row) {
    std::string begin = in_columns(name_of(row), kName) + right(with_commas(row.events), kCount);
    if (row.measures.empty()) {
      // A channel of one nameless operation has told its events already.
      if (begin.find_first_not_of(' ') < kName) line(begin);
      return;
    }
    for (const SummaryMeasure& one : row.measures) {
      line(begin + "  " + measure(one));
      begin = std::string(kName + kCount, ' ');
    }
  }

  [[nodiscard]] std::string measure(const SummaryMeasure& one) const {
    const bool time = one.is_time();
    const auto words_of = [time](std::uint64_t value) {
      return time ? duration_text(static_cast<double>(value)) : bytes_text(value);
    };
    const auto at = [&](double q) {
      return right(words_of(one.values.quantile(q, report_.table.coarser())), kNumber);
    };
    // Levels, such as allocated_bytes, are not added up.
    const bool adds_up = time || one.key == "bytes";
    std::string words = in_columns(shown(time ? without_end(one.key, "_ns") : one.key), kOf) +
                        right(with_commas(one.values.count()), kCount) + at(0.5) + at(0.9) +
                        at(0.99) + right(words_of(one.values.max()), kNumber) +
                        right(adds_up ? words_of(one.values.sum()) : "-", kNumber);
    if (one.slowest) words += slowest(*one.slowest, words_of(one.slowest->median));
    return words;
  }
  /// Where the medians of ranks differ by more than their errors.
  [[nodiscard]] std::string slowest(const SummaryMeasure::Slowest& one,
                                    const std::string& median) const {
    const double times = static_cast<double>(one.median) / static_cast<double>(one.least_median);
    if (times < 1 + 2 * Sketch::error(report_.table.coarser())) return "";
    char words[64];
    std::snprintf(words, sizeof words, " (%.2f x)", times);
    return "  " + std::to_string(one.rank) + ": " + median + words;
  }

  void open() {
    if (report_.open.empty()) return;
    line("");
    line(plural(report_.open.size(), "operation") +
         (report_.open.size() == 1 ? " was issued and has" : " were issued and have") +
         " no end in these files, the oldest first:");
    for (std::size_t i = 0; i < std::min(kOpen, report_.open.size()); ++i) {
      const SummaryOpen& one = report_.open[i];
      const SummaryProcess& process = report_.table.processes()[one.process];
      const double ago = static_cast<double>(process.last_ns) - static_cast<double>(one.time_ns);
      line("  " + in_columns(rank_words(process.rank), 9) +
           shown(report_.table.kinds()[one.kind].operation) + ", op_id " +
           std::to_string(one.op_id) + ", " + duration_text(ago) + " before its last event");
    }
    if (report_.open.size() > kOpen) {
      line("  … and " + with_commas(report_.open.size() - kOpen) + " more (--json tells more)");
    }
  }

  void losses() {
    if (report_.publishers > 0) {
      line("");
      line(report_.missing == 0
               ? "No event is missing: the sequences of " +
                     plural(report_.publishers, "publisher") + " have no gap."
               : plural(report_.missing, "event") + (report_.missing == 1 ? " is" : " are") +
                     " missing, by gaps in sequences:");
    }
    std::size_t told = 0;
    for (const SummaryLoss& one : report_.losses) {
      if (one.missing == 0 || ++told > kLosses) continue;
      line("  " + in_columns(rank_words(one.rank), 9) + shown(one.channel) + ": " +
           with_commas(one.missing) + " in " + plural(one.publishers, "publisher"));
    }
    if (told > kLosses) line("  … and " + with_commas(told - kLosses) + " more (--json tells all)");
    if (report_.backward > 0) {
      line(plural(report_.backward, "line") +
           " came twice or out of its publisher's order: were lines of one file given twice?");
    }
    if (report_.table.told().empty()) return;
    line("What lines tell of losses (also among those above):");
    for (const auto& [one, count] : report_.table.told()) {
      line("  " + in_columns(rank_words(report_.table.processes()[one.process].rank), 9) +
           shown(one.channel) + ": " + shown(one.what) + " " + with_commas(count));
    }
  }

  void limits() {
    const auto& beyond = report_.table.beyond();
    const auto told = [this](std::uint64_t lines, const char* what) {
      if (lines > 0) line(plural(lines, "line") + " " + what);
    };
    told(beyond.operations, "of operations beyond the limit are told as (others).");
    told(beyond.processes + beyond.cells, "of processes beyond the limit are told together.");
    told(beyond.sequences, "of publishers beyond the limit were not searched for gaps.");
    told(beyond.pairs, "of operations were not paired: too many were open at once.");
  }

  const SummaryReport& report_;
  const std::size_t top_;
  std::string text_;
};

}  // namespace

std::string summary_text(const SummaryReport& report, std::size_t top) {
  return Text(report, top).write();
}

}  // namespace ringmain::cli
