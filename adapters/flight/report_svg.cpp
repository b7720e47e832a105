#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/flight/report.hpp"
#include "adapters/flight/svg_text.hpp"
#include "adapters/formats/json_text.hpp"

namespace ringmain::flight {
namespace {

constexpr std::size_t kPanelsMax = 8;
constexpr std::int64_t kBefore = 12;  // operations that are shown before a finding's
constexpr std::int64_t kAfter = 4;
constexpr std::size_t kRowsMax = 64;
constexpr int kCell = 22;
constexpr int kLabel = 220;
constexpr int kLine = 16;
constexpr std::size_t kColumns = 150;      // letters that a line has room for
constexpr std::size_t kLabelColumns = 28;  // and a row's label

/// One letter and one colour for each state of a cell; also readable without colours.
struct Look {
  char letter;
  const char* colour;
  const char* means;
  const char* ink = "";  // of the letter
};
constexpr Look kLooks[] = {{'e', "#f2c14e", "enqueued"},
                           {'s', "#f78154", "started"},
                           {'t', "#b4436c", "failed or timed out", " fill=\"#ffffff\""},
                           {'o', "#9fc5a8", "over"},
                           {'f', "#5fad56", "finished"},
                           {'-', "#ffffff", "never enqueued"},
                           {'.', "#d9d9d9", "overwritten"},
                           {'?', "#bfbfbf", "no file"}};

char letter_of(const Line& line, std::int64_t seq) {
  if (const Operation* found = line.find(seq)) {
    return kLooks[static_cast<std::size_t>(found->phase)].letter;
  }
  return !line.blind.empty() || seq < line.whole_from ? '.' : '-';
}

/// A row of cells.
struct Row {
  std::string letters;
  std::string blamed;  // what the finding calls its ranks
  bool operator<(const Row& other) const noexcept {
    return std::tie(letters, blamed) < std::tie(other.letters, other.blamed);
  }
};

bool has(const std::vector<std::int64_t>& ranks, std::int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}
const char* blamed(const Finding& finding, std::int64_t rank) {
  if (has(finding.culprits, rank)) return "culprit";
  if (has(finding.suspects, rank)) return "suspected";
  return has(finding.held_up, rank) ? "held up" : "";
}

/// What each rank has from `from` to `to`, ranks that are alike together.
std::map<Row, std::vector<std::int64_t>> rows_of(const Group& group, const Finding& finding,
                                                 std::int64_t from, std::int64_t to) {
  std::map<Row, std::vector<std::int64_t>> rows;
  for (const Line& line : group.lines) {
    std::string letters;
    for (std::int64_t seq = from; seq <= to; ++seq) letters += letter_of(line, seq);
    rows[{letters, blamed(finding, line.rank)}].push_back(line.rank);
  }
  const std::string none(static_cast<std::size_t>(to - from + 1), '?');
  for (const std::int64_t rank : group.missing) rows[{none, blamed(finding, rank)}].push_back(rank);
  return rows;
}

/// The operations around a finding's that any rank has: nobody lacks one that never was.
std::pair<std::int64_t, std::int64_t> shown_around(const Group& group, std::int64_t trimmed_to,
                                                   std::int64_t seq) {
  std::int64_t first = seq, last = seq;
  for (const Line& line : group.lines) {
    if (line.operations.empty()) continue;
    first = std::min(first, line.operations.front().seq);
    last = std::max(last, line.newest_seq());
  }
  const std::int64_t from = std::max({trimmed_to, first, seq - std::min(kBefore, seq)});
  return {std::min(from, seq), std::min(last, seq + kAfter)};
}

std::string label_of(const std::vector<std::int64_t>& ranks, const std::string& blamed) {
  const std::size_t room = kLabelColumns - (blamed.empty() ? 0 : blamed.size() + 3);
  std::string label = (ranks.size() == 1 ? "rank " : "ranks ") + ranks_short(ranks);
  if (label.size() > room) label = label.substr(0, room - 3) + "...";
  return blamed.empty() ? label : label + " (" + blamed + ")";
}

/// In lines that the picture has room for; returns where the next may begin.
int draw_sentence(std::string& to, std::string_view sentence, int y) {
  while (!sentence.empty()) {
    std::size_t end = sentence.size();
    if (end > kColumns) {
      end = sentence.rfind(' ', kColumns);
      if (end == sentence.npos || end == 0) end = kColumns;
    }
    to += svg_text(10, y + kLine, sentence.substr(0, end), " font-weight=\"bold\"");
    y += kLine;
    sentence.remove_prefix(
        std::min(sentence.size(), end + (sentence.size() > end && sentence[end] == ' ')));
  }
  return y;
}

/// The finding's number, and every fourth that leaves room for it.
bool is_numbered(std::int64_t seq, std::int64_t of_finding) {
  const auto letters = static_cast<std::int64_t>(std::to_string(of_finding).size());
  const std::int64_t away = (seq < of_finding ? of_finding - seq : seq - of_finding) * kCell;
  return seq == of_finding || (seq % 4 == 0 && away > 8 * letters + 6);
}

std::string cell_at(int x, int y, char letter, bool marked) {
  const auto look = std::find_if(std::begin(kLooks), std::end(kLooks),
                                 [letter](const Look& one) { return one.letter == letter; });
  std::string made = "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) +
                     "\" width=\"20\" height=\"20\" fill=\"" + look->colour + "\" stroke=\"" +
                     (marked ? "#000000\" stroke-width=\"2" : "#888888") + "\"><title>" +
                     look->means + "</title></rect>\n";
  return made + svg_text(x + 7, y + 15, std::string(1, letter), look->ink);
}

/// One finding's operations; returns where the next panel may begin.
int draw_panel(std::string& to, const Job& job, const Verdict& verdict, const Finding& finding,
               int y) {
  const Group& group = verdict.groups[finding.group];
  y = draw_sentence(to, finding.sentence, y) + kLine;
  if (finding.seq < 0) return y;
  const auto [from, until] = shown_around(group, verdict.trimmed_to[finding.group], finding.seq);
  to += svg_text(10, y + 15, name_of(group, job.kept.texts).substr(0, kLabelColumns));
  for (std::int64_t seq = from; seq <= until; ++seq) {
    if (is_numbered(seq, finding.seq)) {
      to += svg_text(kLabel + static_cast<int>(seq - from) * kCell, y + 15, std::to_string(seq));
    }
  }
  y += kCell;
  std::size_t shown = 0;
  for (const auto& [row, ranks] : rows_of(group, finding, from, until)) {
    if (++shown > kRowsMax) {
      to += svg_text(10, y + 15, "and more");
      return y + 2 * kCell;
    }
    to += svg_text(10, y + 15, label_of(ranks, row.blamed));
    for (std::size_t i = 0; i < row.letters.size(); ++i) {
      to += cell_at(kLabel + static_cast<int>(i) * kCell, y, row.letters[i],
                    from + static_cast<std::int64_t>(i) == finding.seq);
    }
    y += kCell;
  }
  return y + kCell;
}

/// A text of a dump may hold anything; what XML does not allow is left out, and so are controls.
bool is_in_xml(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first >= 0x20 && first < 0x7f;
  if (character.size() == 2 && first == 0xc2)
    return static_cast<unsigned char>(character[1]) >= 0xa0;
  return character != "\xef\xbf\xbe" && character != "\xef\xbf\xbf";
}

}  // namespace

std::string svg_escaped(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(formats::detail::utf8_length(text), 1);
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (character == "<") {
      made += "&lt;";
    } else if (character == ">") {
      made += "&gt;";
    } else if (character == "&") {
      made += "&amp;";
    } else if (character == "\"") {
      made += "&quot;";
    } else if (is_in_xml(character)) {
      made += character;
    }
  }
  return made;
}

std::string svg_text(int x, int y, std::string_view text, const char* more) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\"" + more + ">" +
         svg_escaped(text) + "</text>\n";
}

std::string report_svg(const Job& job, const Verdict& verdict) {
  std::string body;
  int y = 10;
  int x = 10;
  for (const Look& look : kLooks) {
    body += cell_at(x, y, look.letter, false) + svg_text(x + 24, y + 15, look.means);
    x += 40 + 7 * static_cast<int>(std::string_view(look.means).size());  // letters of 12 pixels
  }
  y += 2 * kCell;
  std::size_t panels = 0;
  for (const Finding& finding : verdict.findings) {
    if (++panels > kPanelsMax) break;
    y = draw_panel(body, job, verdict, finding, y);
  }
  if (verdict.findings.empty()) {
    body += svg_text(10, y + 16, "Nothing was found to be wrong.");
    y += kCell;
  } else if (verdict.findings.size() > kPanelsMax) {
    body += svg_text(10, y + 16, std::to_string(verdict.findings.size() - kPanelsMax) + " more");
    y += kCell;
  }
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"" +
         std::to_string(y + 20) +
         "\" font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#ffffff\"/>\n" +
         body + "</svg>\n";
}

}  // namespace ringmain::flight
