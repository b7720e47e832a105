// Do all ranks call the same operation, with as many elements of the same types? The majority is
// right; where there is none, both sides are suspects.
#include <algorithm>
#include <map>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

/// What each rank has of one aspect, in words.
using Sides = std::map<std::string, std::vector<const Present*>>;

class MismatchJudge {
 public:
  MismatchJudge(Judging& judging, const Group& group, const std::vector<Present>& present)
      : judging_(judging), group_(group), present_(present) {}

  bool judge(bool all_there) {
    if (all_alike() && !breaks_a_law(first())) return false;
    if (tell(FindingKind::operation, sides([this](const Present& one) { return name(one); })))
      return true;
    const SizeLaw law = law_of(judging_.text(first().name));
    judge_sizes(law);
    if (law.sums && all_there) judge_sums();
    (void)tell(FindingKind::type, sides([this](const Present& one) { return types(one); }));
    return false;
  }

 private:
  [[nodiscard]] const Entry& entry(const Present& one) const {
    return judging_.entry(*one.line, *one.operation);
  }
  [[nodiscard]] const Entry& first() const { return entry(present_.front()); }

  /// The usual case, told without making words.
  [[nodiscard]] bool all_alike() const {
    return std::all_of(present_.begin(), present_.end(), [this](const Present& one) {
      const Entry& mine = entry(one);
      return !one.operation->is_batch() && mine.name == first().name &&
             mine.inputs == first().inputs && mine.outputs == first().outputs;
    });
  }

  [[nodiscard]] std::string name(const Present& one) const {
    std::string made;
    for (std::uint32_t i = one.operation->first; i <= one.operation->last; ++i) {
      if (!made.empty()) made += "+";
      made += judging_.text(judging_.entry(*one.line, i).name);
    }
    return made;
  }

  /// Types of all tensors, each once: "Float", "Float,Long"; "" for an operation without any.
  [[nodiscard]] std::string types(const Present& one) const {
    std::vector<std::string> all;
    for (std::uint32_t i = one.operation->first; i <= one.operation->last; ++i) {
      const Entry& mine = judging_.entry(*one.line, i);
      for (const std::uint32_t side : {mine.inputs.types, mine.outputs.types}) {
        for (std::string_view rest = judging_.text(side); !rest.empty();) {
          const std::size_t comma = std::min(rest.find(','), rest.size());
          all.emplace_back(rest.substr(0, comma));
          rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
      }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::string made;
    for (const std::string& type : all) made += (made.empty() ? "" : ",") + type;
    return made;
  }

  template <class Word>
  [[nodiscard]] Sides sides(Word&& word) const {
    Sides made;
    for (const Present& one : present_) {
      std::string text = word(one);
      if (!text.empty()) made[std::move(text)].push_back(&one);
    }
    return made;
  }

  [[nodiscard]] std::string elements(const Present& one, const SizeLaw& law, bool inputs) const {
    std::string made;
    for (std::uint32_t i = one.operation->first; i <= one.operation->last; ++i) {
      const Entry& mine = judging_.entry(*one.line, i);
      const Tensors& tensors = inputs ? mine.inputs : mine.outputs;
      const auto count = judging_.elements.of(tensors);
      if (law.empty_is_fine && count == 0u) continue;
      if (!made.empty()) made += "+";
      made += count ? std::to_string(*count) : std::string(judging_.text(tensors.sizes));
    }
    return made.empty() ? made : made + (inputs ? " elements in" : " elements out");
  }

  void judge_sizes(const SizeLaw& law) {
    if (law.inputs && tell(FindingKind::size,
                           sides([&](const Present& one) { return elements(one, law, true); }))) {
      return;
    }
    if (law.outputs && tell(FindingKind::size,
                            sides([&](const Present& one) { return elements(one, law, false); }))) {
      return;
    }
    Sides broken;
    for (const Present& one : present_) {
      if (one.operation->is_batch()) continue;
      broken[breaks_a_law(entry(one)) ? "sizes that do not fit the number of ranks"
                                      : "sizes that fit"]
          .push_back(&one);
    }
    if (broken.size() == 1 && broken.begin()->first != "sizes that fit") {
      tell_all(broken.begin()->second);
    } else {
      (void)tell(FindingKind::size, broken);
    }
  }

  /// all_gather makes as many times its input as there are ranks, reduce_scatter the reverse.
  [[nodiscard]] bool breaks_a_law(const Entry& mine) const {
    const SizeLaw law = law_of(judging_.text(mine.name));
    if (law.outputs_times == 0) return false;
    const auto in = judging_.elements.of(mine.inputs);
    const auto out = judging_.elements.of(mine.outputs);
    if (!in || !out) return false;
    const std::uint64_t less = law.outputs_times > 0 ? *in : *out;
    const std::uint64_t more = law.outputs_times > 0 ? *out : *in;
    std::uint64_t wanted = 0;
    return __builtin_mul_overflow(less, std::uint64_t{group_.members.size()}, &wanted) ||
           wanted != more;
  }

  void judge_sums() {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    std::vector<const Present*> all;
    for (const Present& one : present_) {
      const auto sent = judging_.elements.of(entry(one).inputs);
      const auto received = judging_.elements.of(entry(one).outputs);
      if (!sent || !received || one.operation->is_batch()) return;
      if (__builtin_add_overflow(in, *sent, &in) || __builtin_add_overflow(out, *received, &out)) {
        return;
      }
      all.push_back(&one);
    }
    if (in == out) return;
    Finding finding = begun(FindingKind::size);
    finding.suspects = ranks(all);
    finding.sentence = "In " + title() + " all ranks together send " + std::to_string(in) +
                       " elements and receive " + std::to_string(out) +
                       "; whose count is wrong cannot be said";
    tell_once(std::move(finding));
  }

  [[nodiscard]] static std::vector<std::int64_t> ranks(const std::vector<const Present*>& of) {
    std::vector<std::int64_t> made;
    for (const Present* one : of) made.push_back(one->line->rank);
    std::sort(made.begin(), made.end());
    return made;
  }
  [[nodiscard]] std::string title() const {
    const Present& one = present_.front();
    return judging_.title(group_, one.operation->seq,
                          judging_.name_of_batch(*one.line, *one.operation));
  }
  [[nodiscard]] Finding begun(FindingKind kind) const {
    const Present& one = present_.front();
    Finding finding;
    finding.kind = kind;
    finding.group = static_cast<std::size_t>(&group_ - judging_.verdict.groups.data());
    finding.seq = one.operation->seq;
    finding.operation = judging_.name_of_batch(*one.line, *one.operation);
    finding.certain = true;
    return finding;
  }

  /// The first of a kind in a group; the same ranks do the same wrong again and again.
  void tell_once(Finding finding) {
    const bool told = std::any_of(judging_.verdict.findings.begin(),
                                  judging_.verdict.findings.end(), [&](const Finding& other) {
                                    return other.group == finding.group &&
                                           other.kind == finding.kind &&
                                           other.culprits == finding.culprits &&
                                           other.suspects == finding.suspects;
                                  });
    if (!told) judging_.tell(std::move(finding));
  }

  void tell_all(const std::vector<const Present*>& of) {
    Finding finding = begun(FindingKind::size);
    finding.suspects = ranks(of);
    finding.where = judging_.text(entry(*of.front()).where);
    finding.sentence = "The sizes of " + title() + " do not fit the number of its ranks, on " +
                       ranks_text(finding.suspects);
    tell_once(std::move(finding));
  }

  /// True if there were two sides.
  bool tell(FindingKind kind, const Sides& sides);
  [[nodiscard]] std::string hint(const std::vector<const Present*>& wrong,
                                 const std::vector<const Present*>& right) const;
  [[nodiscard]] std::size_t alike(const Present& one, std::size_t shift, const Present& other,
                                  std::size_t other_shift) const;

  Judging& judging_;
  const Group& group_;
  const std::vector<Present>& present_;
};

bool MismatchJudge::tell(FindingKind kind, const Sides& sides) {
  if (sides.size() < 2) return false;
  const auto largest = std::max_element(
      sides.begin(), sides.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  std::size_t count = 0;
  for (const auto& side : sides) count += side.second.size();
  const bool decided = largest->second.size() * 2 > count;
  Finding finding = begun(kind);
  std::vector<const Present*> wrong;
  std::string words;
  for (const auto& [text, side] : sides) {
    if (&side == &largest->second) continue;
    wrong.insert(wrong.end(), side.begin(), side.end());
    words += (words.empty() ? "" : ", ") + ranks_text(ranks(side)) + " with " + text;
  }
  finding.sentence = "In " + title() + " the ranks differ: " + words + ", and " +
                     ranks_text(ranks(largest->second)) + " with " + largest->first;
  finding.where = judging_.text(entry(*wrong.front()).where);
  if (decided) {
    finding.culprits = ranks(wrong);
    if (kind != FindingKind::type) finding.sentence += hint(wrong, largest->second);
  } else {
    wrong.insert(wrong.end(), largest->second.begin(), largest->second.end());
    finding.suspects = ranks(wrong);
    finding.sentence += "; there is no majority";
  }
  for (const Present& one : present_) {
    if (is_open(one.operation->phase)) finding.waiting.push_back(one.line->rank);
  }
  const Present& one = *wrong.front();
  judging_.time(finding, *one.line, entry(one));
  if (finding.where.empty()) finding.where = judging_.text(entry(one).where);
  tell_once(std::move(finding));
  return true;
}

/// How many operations in a row are the same on two ranks, up to 8?
std::size_t MismatchJudge::alike(const Present& one, std::size_t shift, const Present& other,
                                 std::size_t other_shift) const {
  const auto at = [](const Present& of, std::size_t by) {
    return static_cast<std::size_t>(of.operation - of.line->operations.data()) + by;
  };
  std::size_t same = 0;
  while (same < 8) {
    const std::size_t a = at(one, shift + same);
    const std::size_t b = at(other, other_shift + same);
    if (a >= one.line->operations.size() || b >= other.line->operations.size()) break;
    const Entry& mine = judging_.entry(*one.line, one.line->operations[a]);
    const Entry& theirs = judging_.entry(*other.line, other.line->operations[b]);
    if (mine.name != theirs.name || !(mine.inputs == theirs.inputs)) return 0;
    ++same;
  }
  return same;
}

std::string MismatchJudge::hint(const std::vector<const Present*>& wrong,
                                const std::vector<const Present*>& right) const {
  if (wrong.size() != 1) return "";
  const std::size_t skipped = alike(*wrong.front(), 0, *right.front(), 1);
  const std::size_t extra = alike(*wrong.front(), 1, *right.front(), 0);
  if (skipped > 1 && skipped > extra) return ". It looks as if that rank had left one out";
  if (extra > 1 && extra > skipped) return ". It looks as if that rank had one too many";
  return "";
}

}  // namespace

bool judge_mismatch(Judging& judging, const Group& group, const std::vector<Present>& present,
                    bool all_there) {
  return MismatchJudge(judging, group, present).judge(all_there);
}

}  // namespace ringmain::flight
