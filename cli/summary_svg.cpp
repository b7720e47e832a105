// How long operations took, as a picture: a row for each operation and rank, time on one
// logarithmic axis, so that what is a thousand times longer is there, too.
#include <algorithm>
#include <cmath>
#include <set>

#include "adapters/flight/svg_text.hpp"

#include "cli/summary_report.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using flight::svg_escaped;
using flight::svg_text;

enum : int { kLeft = 400, kRight = 990, kWidth = 1200, kRow = 16 };
enum : std::size_t { kOperationsMax = 80, kRanksMax = 16, kNameMax = 42 };

constexpr const char* kBar = "#2f6690";      // from the median to 90 of a hundred
constexpr const char* kSlowest = "#f78154";  // the same, of the slowest rank
constexpr const char* kLine = "#888888";

class Picture {
 public:
  Picture(const SummaryReport& report, std::size_t top) : report_(report), top_(top) {}

  std::string draw() {
    choose();
    legend();
    const int axis_from = y_;
    if (!chosen_.empty()) {
      body_ += svg_text(kLeft - 40, y_ - 10, "rank", " text-anchor=\"end\" fill=\"#555555\"");
    }
    for (std::size_t i = 0; i < chosen_.size();) i = operation(i);
    for (const std::string& words : left_out_) {
      body_ += svg_text(10, y_ + 12, words);
      y_ += kRow;
    }
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
           "\" height=\"" + std::to_string(y_ + 20) +
           "\" font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"#ffffff\"/>\n" +
           grid(axis_from) + body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] const SummaryKind& kind_of(const SummaryRow& row) const {
    return report_.table.kinds()[row.kind];
  }
  [[nodiscard]] std::uint64_t median_of(const SummaryRow& row) const {
    return row.measures.front().values.quantile(0.5, report_.table.coarser());
  }

  /// The rows with a time that are drawn, and how wide the axis is.
  void choose() {
    std::set<std::uint32_t> all, of_channel;
    std::string_view channel;
    std::set<std::uint32_t> left;
    for (const SummaryRow& row : report_.rows) {
      if (row.measures.empty() || !row.measures.front().is_time()) continue;
      if (kind_of(row).channel != channel) of_channel.clear();
      channel = kind_of(row).channel;
      const bool enough = (top_ > 0 && of_channel.size() >= top_) || all.size() >= kOperationsMax;
      if (enough && !of_channel.contains(row.kind)) {
        left.insert(row.kind);
        continue;
      }
      of_channel.insert(row.kind);
      all.insert(row.kind);
      chosen_.push_back(&row);
      const Sketch& values = row.measures.front().values;
      least_ = chosen_.size() == 1 ? values.min() : std::min(least_, values.min());
      most_ = std::max(most_, values.max());
    }
    if (!left.empty()) left_out_.push_back("and " + plural(left.size(), "operation") + " more");
    from_ = least_ == 0 ? 0 : std::floor(std::log10(static_cast<double>(least_)));
    to_ = most_ == 0 ? 1 : std::ceil(std::log10(static_cast<double>(most_)));
    to_ = std::max(to_, from_ + 1);
  }

  [[nodiscard]] int x_of(std::uint64_t ns) const {
    const double at =
        (std::log10(static_cast<double>(std::max<std::uint64_t>(ns, 1))) - from_) / (to_ - from_);
    return kLeft + static_cast<int>(std::clamp(at, 0.0, 1.0) * (kRight - kLeft));
  }

  void legend() {
    body_ += svg_text(10, 20,
                      "How long it took: " + plural(report_.table.events(), "event") + " of " +
                          plural(std::max<std::uint64_t>(report_.ranks, 1), "rank"),
                      " font-weight=\"bold\"");
    if (chosen_.empty()) {
      body_ += svg_text(10, 44, "No event says how long anything took.");
      y_ = 60;
      return;
    }
    body_ += rect(kLeft, 10, 30, 10, kBar) + svg_text(kLeft + 36, 19, "median to p90") +
             rect(kLeft + 150, 10, 30, 10, kSlowest) +
             svg_text(kLeft + 186, 19, "of the slowest rank") + rect(kLeft + 340, 13, 30, 4, kBar) +
             svg_text(kLeft + 376, 19, "to p99") + line(kLeft + 440, 15, kLeft + 470, 15) +
             svg_text(kLeft + 476, 19, "least to most");
    y_ = 56;
  }

  [[nodiscard]] std::string grid(int from) const {
    if (chosen_.empty()) return "";
    std::string made;
    const int decades = static_cast<int>(to_ - from_);
    for (int i = 0; i <= decades; ++i) {
      const int x = kLeft + i * (kRight - kLeft) / decades;
      made += "<line x1=\"" + std::to_string(x) + "\" x2=\"" + std::to_string(x) + "\" y1=\"" +
              std::to_string(from - 4) + "\" y2=\"" + std::to_string(y_) +
              "\" stroke=\"#dddddd\"/>\n" +
              svg_text(x, from - 10, axis_words(std::pow(10.0, from_ + i)),
                       " text-anchor=\"middle\" fill=\"#555555\"");
    }
    return made;
  }
  /// A power of ten without the zeros behind its point.
  static std::string axis_words(double ns) {
    std::string words = duration_text(ns);
    const std::size_t point = words.find(".0");
    if (point != words.npos) words.erase(point, words.find(' ') - point);
    return words;
  }

  static std::string rect(int x, int y, int width, int height, const char* colour) {
    return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
           std::to_string(std::max(width, 1)) + "\" height=\"" + std::to_string(height) +
           "\" fill=\"" + colour + "\"/>\n";
  }
  static std::string line(int x, int y, int to_x, int to_y) {
    return "<line x1=\"" + std::to_string(x) + "\" y1=\"" + std::to_string(y) + "\" x2=\"" +
           std::to_string(to_x) + "\" y2=\"" + std::to_string(to_y) + "\" stroke=\"" + kLine +
           "\"/>\n";
  }

  /// All ranks of the operation that begins at `from`; returns where the next one begins.
  std::size_t operation(std::size_t from) {
    const SummaryKind& kind = kind_of(*chosen_[from]);
    if (kind.channel != channel_) {
      channel_ = kind.channel;
      y_ += 6;
      body_ += svg_text(10, y_ + 12, channel_, " font-weight=\"bold\"");
      y_ += kRow;
    }
    std::size_t to = from, slowest = from;
    for (; to < chosen_.size() && chosen_[to]->kind == chosen_[from]->kind; ++to) {
      if (slowness_of(*chosen_[to]) > slowness_of(*chosen_[slowest])) slowest = to;
    }
    body_ += svg_text(20, y_ + 12, std::string_view(kind.operation).substr(0, kNameMax));
    for (std::size_t i = from; i < std::min(to, from + kRanksMax); ++i) {
      row(*chosen_[i], to - from > 1 && i == slowest);
    }
    if (to - from > kRanksMax) {
      body_ += svg_text(kLeft, y_ + 12,
                        "and " + plural(to - from - kRanksMax, "rank") +
                            " more, the slowest rank " + rank_of(*chosen_[slowest]));
      y_ += kRow;
    }
    y_ += 2;
    return to;
  }

  /// A process without a rank, as a launcher, is no rank's rival.
  [[nodiscard]] std::pair<bool, std::uint64_t> slowness_of(const SummaryRow& row) const {
    return {row.rank.has_value(), median_of(row)};
  }
  static std::string rank_of(const SummaryRow& row) {
    return row.rank ? std::to_string(*row.rank) : "none";
  }

  void row(const SummaryRow& row, bool slowest) {
    const Sketch& values = row.measures.front().values;
    const auto at = [&](double q) { return values.quantile(q, report_.table.coarser()); };
    const int middle = y_ + kRow / 2, median = x_of(at(0.5)), p90 = x_of(at(0.9));
    const char* colour = slowest ? kSlowest : kBar;
    body_ += "<g><title>" +
             svg_escaped(kind_of(row).operation + ", " + row.measures.front().key + ", rank " +
                         rank_of(row) + ": median " + words(at(0.5)) + ", p90 " + words(at(0.9)) +
                         ", p99 " + words(at(0.99)) + ", max " + words(values.max())) +
             "</title>\n" + line(x_of(values.min()), middle, x_of(values.max()), middle) +
             rect(median, middle - 2, x_of(at(0.99)) - median, 4, colour) +
             rect(median, middle - 5, p90 - median, 10, colour) +
             rect(median - 1, middle - 7, 2, 14, "#000000") + "</g>\n" +
             svg_text(kLeft - 10, y_ + 12, rank_of(row), " text-anchor=\"end\" fill=\"#555555\"") +
             svg_text(kRight + 12, y_ + 12,
                      with_commas(values.count()) + ", in all " + words(values.sum()));
    y_ += kRow;
  }
  static std::string words(std::uint64_t ns) { return duration_text(static_cast<double>(ns)); }

  const SummaryReport& report_;
  const std::size_t top_;
  std::vector<const SummaryRow*> chosen_;
  std::vector<std::string> left_out_;
  std::uint64_t least_ = 0, most_ = 0;
  double from_ = 0, to_ = 1;  // powers of ten nanoseconds
  std::string channel_;
  std::string body_;
  int y_ = 0;
};

}  // namespace

std::string summary_svg(const SummaryReport& report, std::size_t top) {
  return Picture(report, top).draw();
}

}  // namespace ringmain::cli
