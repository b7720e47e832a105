// What a process did last as a picture: a row for each thread, time from left to right, bars for
// operations, of which those that had not ended reach the right edge, and a tick for each other
// event.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/collective.hpp"

#include "adapters/flight/svg_text.hpp"

#include "cli/post_mortem.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

using flight::RecordedEvent;
using flight::svg_text;

enum : int { kLabel = 220, kWidth = 1200, kBar = 16, kLanesMax = 12 };
enum : std::size_t { kRowsMax = 64 };

template <class E>
std::optional<E> event_as(const RecordedEvent& recorded) {
  const E* const there = recorded.schema == nullptr ? nullptr : recorded.view().as<E>();
  if (there == nullptr || recorded.bytes != sizeof(E)) return std::nullopt;
  E copy;
  std::memcpy(static_cast<void*>(&copy), there, sizeof copy);
  return copy;
}

enum class Became { completed, failed, open, unknown };
struct Look {
  const char* colour;
  const char* means;
};
Look look_of(Became became) {
  switch (became) {
    case Became::completed:
      return {"#5fad56", "completed"};
    case Became::failed:
      return {"#b4436c", "failed"};
    case Became::open:
      return {"#f2c14e", "had not ended"};
    case Became::unknown:
      break;
  }
  return {"#d9d9d9", "its end is not in the file"};
}

struct Bar {
  std::int64_t from_ns = 0, to_ns = 0;
  Became became = Became::unknown;
  std::string words;
};
struct Row {
  std::string name;
  std::vector<Bar> bars;
  std::vector<std::pair<std::int64_t, std::string>> ticks;
};

std::string operation_words(std::string_view op, std::string_view group, std::uint64_t sequence) {
  return std::string(op) + " of '" + std::string(group) + "' #" + std::to_string(sequence);
}

class Picture {
 public:
  Picture(const flight::RingDump& dump, std::size_t events) : dump_(dump), events_(events) {}

  std::string draw() {
    gather();
    legend();
    std::size_t shown = 0;
    for (const auto& [thread, row] : rows_) {
      if (++shown > kRowsMax) {
        body_ += svg_text(10, y_ + 13, std::to_string(rows_.size() - kRowsMax) + " threads more");
        y_ += 2 * kBar;
        break;
      }
      draw_row(row);
    }
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWidth) +
           "\" height=\"" + std::to_string(y_ + 20) +
           "\" font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"#ffffff\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  Row& row_of(std::uint32_t thread, std::string_view name) {
    Row& row = rows_[thread];
    if (row.name.empty() || !name.empty()) {
      row.name = thread == 0 ? "(not known)" : std::to_string(thread);
      if (!name.empty()) row.name += " " + std::string(name);
    }
    return row;
  }

  void gather() {
    std::vector<const RecordedEvent*> all;
    for (const flight::RecordedRing& ring : dump_.rings()) {
      for (std::size_t i = ring.events.size() - std::min(events_, ring.events.size());
           i < ring.events.size(); ++i)
        all.push_back(&ring.events[i]);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
      return a->stamp.time_ns < b->stamp.time_ns;
    });
    to_ns_ = dump_.last_ns();
    from_ns_ = all.empty() ? to_ns_ : all.front()->stamp.time_ns;
    for (const RecordedEvent* const one : all) hear(*one);
    for (const flight::OpenCollective& one : dump_.open()) {
      (void)issued_.erase(one.id);
      row_of(one.thread, one.thread_name)
          .bars.push_back({one.time_ns, to_ns_, Became::open,
                           operation_words(one.op, one.group, one.sequence)});
    }
    for (auto& [id, issued] : issued_) rows_[issued.first].bars.push_back(std::move(issued.second));
  }

  void hear(const RecordedEvent& one) {
    Row& row = row_of(one.thread, one.thread_name);
    const std::int64_t at = one.stamp.time_ns;
    if (const auto issued = event_as<collective::Issued>(one)) {
      issued_[issued->op_id] = {
          one.thread,
          {at, at, Became::unknown,
           operation_words(issued->op.view(), issued->group.view(), issued->sequence)}};
    } else if (const auto completed = event_as<collective::Completed>(one)) {
      end(completed->op_id, at, Became::completed);
    } else if (const auto failed = event_as<collective::Failed>(one)) {
      end(failed->op_id, at, Became::failed);
    } else {
      row.ticks.emplace_back(at,
                             std::string(one.channel) + " #" + std::to_string(one.stamp.sequence));
    }
  }
  void end(std::uint64_t id, std::int64_t at, Became became) {
    const auto found = issued_.find(id);
    if (found == issued_.end()) return;
    auto& [thread, bar] = found->second;
    bar.to_ns = at;
    bar.became = became;
    rows_[thread].bars.push_back(std::move(bar));
    issued_.erase(found);
  }

  [[nodiscard]] int x_of(std::int64_t at_ns) const {
    // In floating point: a damaged file's times are any.
    const double all = static_cast<double>(to_ns_) - static_cast<double>(from_ns_);
    const double part = static_cast<double>(at_ns) - static_cast<double>(from_ns_);
    const double share = all <= 0 ? 1 : std::clamp(part / all, 0.0, 1.0);
    return kLabel + static_cast<int>(share * (kWidth - kLabel - 20));
  }

  void legend() {
    const auto& head = dump_.file().header;
    std::string whose = std::string(text_of(head.program)) + ", pid " + std::to_string(head.pid) +
                        " on " + std::string(text_of(head.host));
    if (const std::string rank = rank_of(head); !rank.empty()) whose = rank + ": " + whose;
    body_ += svg_text(10, 20, whose, " font-weight=\"bold\"");
    const double took = static_cast<double>(to_ns_) - static_cast<double>(from_ns_);
    body_ += svg_text(10, 40,
                      rows_.empty() ? "Nothing was recorded."
                                    : "the last " + duration_text(took) + " that are recorded");
    int x = 10;
    for (const Became one : {Became::completed, Became::failed, Became::open, Became::unknown}) {
      const Look look = look_of(one);
      body_ += bar_at(x, 50, kBar, one, look.means) + svg_text(x + 22, 62, look.means);
      x += 50 + 8 * static_cast<int>(std::strlen(look.means));
    }
    body_ += tick_at(x, 54, "another event") + svg_text(x + 8, 62, "another event");
    y_ = 80;
    if (!rows_.empty()) scale(took);
  }

  /// How long before the end.
  void scale(double took_ns) {
    constexpr int kParts = 4;
    for (int i = 0; i <= kParts; ++i) {
      const int x = kLabel + i * (kWidth - kLabel - 20) / kParts;
      const std::string at = std::to_string(x);
      body_ += "<line x1=\"" + at + "\" x2=\"" + at + "\" y1=\"" + std::to_string(y_ + 16) +
               "\" y2=\"100%\" stroke=\"#dddddd\"/>\n" +
               svg_text(x, y_ + 12,
                        i == kParts ? "end" : "-" + duration_text(took_ns * (kParts - i) / kParts),
                        i == kParts ? " text-anchor=\"end\"" : "");
    }
    y_ += 26;
  }

  static std::string tick_at(int at, int y, std::string_view words) {
    const std::string x = std::to_string(at);
    return "<line x1=\"" + x + "\" x2=\"" + x + "\" y1=\"" + std::to_string(y) + "\" y2=\"" +
           std::to_string(y + 6) + "\" stroke=\"#2f6690\" stroke-width=\"2\"><title>" +
           flight::svg_escaped(words) + "</title></line>\n";
  }

  /// What is open reaches the right edge, so its words stand where there is room, above all bars.
  static std::string words_at(int x, int y, const std::string& words) {
    const bool before = x > kWidth / 2;
    return svg_text(before ? x - 4 : x + 4, y, words,
                    before ? " text-anchor=\"end\" stroke=\"#ffffff\" stroke-width=\"3\" "
                             "paint-order=\"stroke\""
                           : "");
  }

  static std::string bar_at(int x, int y, int width, Became became, std::string_view words) {
    return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
           std::to_string(std::max(width, 2)) + "\" height=\"" + std::to_string(kBar - 2) +
           "\" fill=\"" + look_of(became).colour + "\" stroke=\"" +
           (became == Became::open ? "#c0392b\" stroke-width=\"2"
            : width < 5            ? "none"
                                   : "#888888") +
           "\"><title>" + flight::svg_escaped(words) + "</title></rect>\n";
  }

  /// Bars that overlap go below each other.
  void draw_row(const Row& row) {
    body_ += svg_text(10, y_ + 13, std::string_view(row.name).substr(0, 28));
    auto bars = row.bars;
    std::stable_sort(bars.begin(), bars.end(),
                     [](const Bar& a, const Bar& b) { return a.from_ns < b.from_ns; });
    std::vector<int> lanes;  // up to where each is taken
    std::string above;
    for (const Bar& bar : bars) {
      const int x = x_of(bar.from_ns), width = x_of(bar.to_ns) - x;
      auto lane = std::find_if(lanes.begin(), lanes.end(), [x](int end) { return end <= x; });
      if (lane == lanes.end() && lanes.size() < kLanesMax) lane = lanes.insert(lane, 0);
      if (lane == lanes.end()) --lane;
      *lane = x + std::max(width, 2);
      const int y = y_ + static_cast<int>(lane - lanes.begin()) * kBar;
      body_ += bar_at(x, y, width, bar.became, bar.words);
      if (bar.became == Became::open) above += words_at(x, y + 12, bar.words);
    }
    body_ += above;
    const int height = kBar * std::max<int>(static_cast<int>(lanes.size()), 1);
    for (const auto& [at, words] : row.ticks) body_ += tick_at(x_of(at), y_ + height, words);
    y_ += height + 14;
  }

  const flight::RingDump& dump_;
  const std::size_t events_;
  std::map<std::uint32_t, Row> rows_;                              // by thread
  std::map<std::uint64_t, std::pair<std::uint32_t, Bar>> issued_;  // whose ends have not come yet
  std::int64_t from_ns_ = 0, to_ns_ = 0;
  std::string body_;
  int y_ = 0;
};

}  // namespace

std::string post_mortem_svg(const flight::RingDump& dump, std::size_t events) {
  return Picture(dump, events).draw();
}

}  // namespace ringmain::cli
