// Who has not joined an operation that others wait in, who has not started it, who has not finished
// it? One group at a time, operation after operation, from where all rings are whole.
//
// Dumps of ranks are made at different moments. So what one rank lacks at its end proves nothing
// until its dump is known to be newer than the wait; and what a rank has finished proves that all
// had joined.
#include <algorithm>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

std::string have(const std::vector<std::int64_t>& ranks) {
  return ranks.size() == 1 ? "has" : "have";
}

class CollectiveJudge {
 public:
  CollectiveJudge(Judging& judging, std::size_t index)
      : judging_(judging), index_(index), group_(judging.verdict.groups[index]) {
    for (const Line& line : group_.lines) {
      if (line.blind.empty()) {
        lines_.push_back(&line);
      } else {
        blind_.push_back(line.rank);
      }
    }
    cursor_.resize(lines_.size());
    behind_.resize(lines_.size());
  }

  void judge() {
    std::int64_t& low = judging_.verdict.trimmed_to[index_];
    for (const Line* line : lines_) low = std::max(low, line->whole_from);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto& all = lines_[i]->operations;
      while (cursor_[i] < all.size() && all[cursor_[i]].seq < low) ++cursor_[i];
    }
    while (next()) {
      ++judging_.verdict.operations;
      const bool all_there = absent_.empty() && present_.size() == lines_.size() &&
                             group_.missing.empty() && blind_.empty();
      if (judge_mismatch(judging_, group_, present_, all_there)) return;
      if (!absent_.empty()) judge_absent();
      if (!hangs_ && present_.size() == lines_.size()) judge_open();
      if (!hangs_ && present_.size() < lines_.size()) judge_behind();
    }
    tell_blind();
  }

 private:
  /// Gathers the operation of the next number; false after the last one.
  bool next() {
    std::int64_t seq = INT64_MAX;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto& all = lines_[i]->operations;
      if (cursor_[i] < all.size()) seq = std::min(seq, all[cursor_[i]].seq);
    }
    if (seq == INT64_MAX) return false;
    seq_ = seq;
    present_.clear();
    absent_.clear();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto& all = lines_[i]->operations;
      if (cursor_[i] < all.size() && all[cursor_[i]].seq == seq) {
        present_.push_back({lines_[i], &all[cursor_[i]]});
        // Of several by one number, which no recorder writes, the first counts.
        while (cursor_[i] < all.size() && all[cursor_[i]].seq == seq) ++cursor_[i];
      } else if (!behind_[i]) {
        absent_.push_back(i);
      }
    }
    return true;
  }

  [[nodiscard]] SizeLaw law() const {
    const Present& one = present_.front();
    return law_of(judging_.text(judging_.entry(*one.line, *one.operation).name));
  }
  [[nodiscard]] std::string title() const {
    const Present& one = present_.front();
    return judging_.title(group_, seq_, judging_.name_of_batch(*one.line, *one.operation));
  }
  [[nodiscard]] Finding begun(FindingKind kind) const {
    const Present& one = present_.front();
    Finding finding;
    finding.kind = kind;
    finding.group = index_;
    finding.seq = seq_;
    finding.operation = judging_.name_of_batch(*one.line, *one.operation);
    return finding;
  }

  /// Has somebody's dump an end of it that was not possible before all had joined?
  [[nodiscard]] bool all_joined_for_sure() const {
    return std::any_of(present_.begin(), present_.end(), [this](const Present& one) {
      if (one.operation->phase == Phase::finished && law().synchronizes) return true;
      if (one.operation->phase < Phase::over || !law().synchronizes) return false;
      const auto& all = one.line->operations;
      return std::any_of(all.begin(), all.end(), [this](const Operation& other) {
        return other.seq > seq_ && other.phase >= Phase::over;
      });
    });
  }

  void judge_absent();
  void tell_absent(const std::vector<std::size_t>& absent, bool hole);
  void judge_open();
  void judge_behind();
  void tell_open(const std::vector<Present>& open);
  void tell_state(const std::vector<Present>& open, std::int64_t since_ns);
  void tell_blind();

  Judging& judging_;
  const std::size_t index_;
  const Group& group_;
  std::vector<const Line*> lines_;
  std::vector<std::int64_t> blind_;
  std::vector<std::size_t> cursor_;
  std::vector<bool> behind_;  // of this line all that can be said was said
  std::int64_t seq_ = 0;
  std::vector<Present> present_;
  std::vector<std::size_t> absent_;
  bool hangs_ = false;
};

void CollectiveJudge::judge_absent() {
  std::int64_t since = 0;
  bool gave_up = false;
  bool waits = false;
  for (const Present& one : present_) {
    if (one.operation->phase == Phase::finished) continue;
    waits = true;
    gave_up |= one.operation->phase == Phase::gave_up;
  }
  for (const Present& one : present_) {
    if (waits && one.operation->phase == Phase::finished) continue;
    const std::int64_t created = judging_.entry(*one.line, *one.operation).created_ns;
    if (since == 0 || created < since) since = created;
  }
  const bool joined = all_joined_for_sure();
  std::vector<std::size_t> missing;
  std::vector<std::size_t> holes;
  for (const std::size_t i : absent_) {
    const Line& line = *lines_[i];
    if (line.newest_seq() > seq_) {
      holes.push_back(i);
    } else if (joined && !judging_.surely_made_after(line, since)) {
      behind_[i] = true;
      judging_.note("The dump of rank " + std::to_string(line.rank) + " is older than others: " +
                    title() + " is not in it, and has been finished by ranks that needed it");
    } else if (waits && !gave_up && !judging_.made_after(line, since)) {
      behind_[i] = true;
      judging_.note("Rank " + std::to_string(line.rank) + " had not yet enqueued " + title() +
                    " when its dump was made; that is no finding so soon (--grace)");
    } else if (waits || joined) {
      missing.push_back(i);
    }
  }
  if (!holes.empty()) tell_absent(holes, true);
  if (!missing.empty()) tell_absent(missing, false);
}

void CollectiveJudge::tell_absent(const std::vector<std::size_t>& absent, bool hole) {
  Finding finding = begun(FindingKind::not_joined);
  finding.certain = hole;
  std::vector<std::int64_t> ranks;
  for (const std::size_t i : absent) {
    behind_[i] = !hole || behind_[i];
    ranks.push_back(lines_[i]->rank);
  }
  std::vector<std::int64_t> there;
  for (const Present& one : present_) {
    there.push_back(one.line->rank);
    if (!hole && one.operation->phase == Phase::finished) continue;
    finding.waiting.push_back(one.line->rank);
    finding.timed_out |= one.operation->phase == Phase::gave_up;
    judging_.time(finding, *one.line, judging_.entry(*one.line, *one.operation));
  }
  finding.certain |= finding.timed_out;
  finding.sentence = ranks_text(ranks) + " never enqueued " + title() + ", ";
  if (hole) {
    finding.sentence += "though later ones; " + ranks_text(there) + " did";
  } else if (finding.waiting.empty()) {
    finding.sentence += "which " + ranks_text(there) + " finished before their dumps were made";
  } else {
    finding.sentence += "in which " + ranks_text(finding.waiting) +
                        (finding.waiting.size() == 1 ? " waits" : " wait") +
                        judging_.since_text(finding);
    if (finding.timed_out) finding.sentence += kGaveUp;
  }
  // Most ranks are right. Where most are not there, it may be one too many on those that are.
  if (ranks.size() > there.size()) {
    finding.suspects = ranks;
    finding.suspects.insert(finding.suspects.end(), there.begin(), there.end());
    std::sort(finding.suspects.begin(), finding.suspects.end());
    finding.sentence +=
        ". Most ranks are not there, so it may as well be an operation too many of " +
        ranks_text(there);
  } else {
    finding.culprits = ranks;
    if (ranks.size() == 1) finding.sentence += judging_.last_of(*lines_[absent.front()]);
  }
  if (!hole) hangs_ = true;
  judging_.tell(std::move(finding));
}

/// Some wait for long, and of those that are not there the dumps are too old to tell.
void CollectiveJudge::judge_behind() {
  std::vector<std::int64_t> waiting;
  for (const Present& one : present_) {
    const std::int64_t created = judging_.entry(*one.line, *one.operation).created_ns;
    if (is_open(one.operation->phase) && judging_.made_after(*one.line, created)) {
      waiting.push_back(one.line->rank);
    }
  }
  std::vector<std::int64_t> old;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (behind_[i] && lines_[i]->find(seq_) == nullptr) old.push_back(lines_[i]->rank);
  }
  if (waiting.empty() || old.empty()) return;
  hangs_ = true;
  judging_.undecided(ranks_text(waiting) + " had not finished " + title() +
                     ", and whether it was joined by " + ranks_text(old) +
                     " cannot be said: the dump is older");
}

void CollectiveJudge::judge_open() {
  std::vector<Present> open;
  std::int64_t ended = 0;
  for (const Present& one : present_) {
    const Entry& entry = judging_.entry(*one.line, one.operation->last);
    if (is_open(one.operation->phase)) {
      open.push_back(one);
    } else {
      ended = std::max({ended, entry.completed_ns, entry.created_ns});
    }
  }
  if (open.empty()) return;
  const bool mixed = open.size() < present_.size();
  if (mixed) return tell_state(open, ended);
  hangs_ = true;
  const bool old = std::any_of(open.begin(), open.end(), [this](const Present& one) {
    return one.operation->phase == Phase::gave_up ||
           judging_.made_after(*one.line, judging_.entry(*one.line, *one.operation).created_ns);
  });
  if (old) return tell_open(open);
  judging_.note("When the dumps were made, " + title() +
                " was under way on all ranks; that is no finding so soon (--grace)");
}

/// All that are known have enqueued it, and none has finished it.
void CollectiveJudge::tell_open(const std::vector<Present>& open) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> started;
  std::vector<std::int64_t> enqueued;
  Finding finding = begun(FindingKind::not_finished);
  bool starts_told = false;
  for (const Present& one : open) {
    const Entry& entry = judging_.entry(*one.line, one.operation->last);
    const bool is_started = entry.state == EntryState::started || entry.started_ns > 0;
    all.push_back(one.line->rank);
    (is_started ? started : enqueued).push_back(one.line->rank);
    finding.timed_out |= one.operation->phase == Phase::gave_up;
    starts_told |=
        what_it_tells(judging_.job.dumps[one.line->dump], judging_.job.kept.texts).starts;
    judging_.time(finding, *one.line, judging_.entry(*one.line, *one.operation));
  }
  finding.waiting = all;
  finding.certain = finding.timed_out;
  std::string& sentence = finding.sentence;
  std::string_view more;
  if (!starts_told) {
    sentence = ranks_text(all) + " enqueued " + title() + ", and it has not finished";
    more = "; whether it started is not recorded";
  } else if (started.empty()) {
    finding.kind = FindingKind::not_started;
    sentence = ranks_text(all) + " enqueued " + title() + ", and none has started it";
  } else if (!enqueued.empty()) {
    finding.kind = FindingKind::not_started;
    (enqueued.size() <= started.size() ? finding.culprits : finding.suspects) = enqueued;
    finding.waiting = started;
    sentence = ranks_text(enqueued) + " enqueued " + title() + " and " + have(enqueued) +
               " not started it, in which " + ranks_text(started) +
               (started.size() == 1 ? " waits" : " wait");
  } else {
    sentence = ranks_text(all) + " started " + title() + ", and it has not finished";
  }
  sentence += judging_.since_text(finding);
  sentence += more;
  if (finding.timed_out) sentence += kGaveUp;
  auto unknown = group_.missing;
  unknown.insert(unknown.end(), blind_.begin(), blind_.end());
  std::sort(unknown.begin(), unknown.end());
  if (!unknown.empty() && finding.culprits.empty()) {
    finding.suspects = unknown;
    finding.kind = FindingKind::not_joined;
    sentence += ". All others have joined: " + ranks_text(unknown) +
                (group_.missing.empty() ? ", whose ring does not reach back so far, "
                                        : ", of which there is no file, ") +
                "may never have enqueued it";
  }
  judging_.tell(std::move(finding));
}

/// Some have finished it, others have not, though nobody can finish without them.
void CollectiveJudge::tell_state(const std::vector<Present>& open, std::int64_t since_ns) {
  std::vector<Present> late;
  for (const Present& one : open) {
    const auto& all = one.line->operations;
    const bool went_on = std::any_of(all.begin(), all.end(), [this](const Operation& other) {
      return other.seq > seq_ && !is_open(other.phase);
    });
    // Operations of a group end in their order, so this one has ended, and was not looked at since.
    if (went_on) continue;
    if (one.operation->phase == Phase::gave_up || judging_.made_after(*one.line, since_ns)) {
      late.push_back(one);
    }
  }
  if (late.empty()) return;
  hangs_ = true;
  Finding finding = begun(FindingKind::state);
  std::vector<std::int64_t> ranks;
  for (const Present& one : late) {
    ranks.push_back(one.line->rank);
    finding.timed_out |= one.operation->phase == Phase::gave_up;
    judging_.time(finding, *one.line, judging_.entry(*one.line, *one.operation));
  }
  finding.waiting = ranks;
  finding.certain = finding.timed_out;
  (late.size() * 2 <= present_.size() ? finding.culprits : finding.suspects) = ranks;
  const std::string done =
      late.front().operation->phase == Phase::enqueued ? "enqueued" : "started";
  finding.sentence = ranks_text(ranks) + " " + done + " " + title() + " and " + have(ranks) +
                     " not finished it" + judging_.since_text(finding) + "; others have";
  judging_.tell(std::move(finding));
}

/// A rank that has nothing of the group left may be well where nothing hangs; one whose recorder
/// does not say whether anything does may not.
void CollectiveJudge::tell_blind() {
  for (const Line& line : group_.lines) {
    if (line.blind.empty() || !(hangs_ || line.uncounted)) continue;
    judging_.undecided("What rank " + std::to_string(line.rank) + " did in " +
                       name_of(group_, judging_.job.kept.texts) + " cannot be said: " + line.blind);
  }
}

}  // namespace

void judge_collectives(Judging& judging, std::size_t group) {
  CollectiveJudge(judging, group).judge();
}

}  // namespace ringmain::flight
