// Which send has no receive, and which receive no send?
//
// The recorders number transfers per rank and group, so numbers of two ranks say nothing about each
// other. Between two ranks they are in order: where neither ring has wrapped, the first belongs to
// the first; else those that are still open are compared by their count.
#include <algorithm>
#include <map>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

struct Side {
  const Line* line = nullptr;
  std::vector<const Transfer*> all;
};
struct Pair {
  Side sender;
  Side receiver;
};

class TransferJudge {
 public:
  TransferJudge(Judging& judging, std::size_t index)
      : judging_(judging), index_(index), group_(judging.verdict.groups[index]) {}

  void judge() {
    std::map<std::pair<std::int64_t, std::int64_t>, Pair> pairs;
    std::size_t of_others = 0;
    for (const Line& line : group_.lines) {
      for (const Transfer& transfer : line.transfers) {
        const bool sends = judging_.text(judging_.entry(line, transfer.entry).name) == "send";
        if (line.rank != (sends ? transfer.from : transfer.to)) {
          ++of_others;
          continue;
        }
        Pair& pair = pairs[{transfer.from, transfer.to}];
        (sends ? pair.sender : pair.receiver).all.push_back(&transfer);
      }
    }
    for (auto& [ends, pair] : pairs) {
      pair.sender.line = line_of(ends.first);
      pair.receiver.line = line_of(ends.second);
      judge_pair(ends.first, ends.second, pair);
    }
    if (group_.unnamed_transfers > 0) {
      judging_.note(std::to_string(group_.unnamed_transfers) + " sends and receives of " +
                    name_of(group_, judging_.job.kept.texts) +
                    " do not say with whom, and are not judged");
    }
    if (of_others > 0) {
      judging_.note(std::to_string(of_others) + " sends and receives of " +
                    name_of(group_, judging_.job.kept.texts) +
                    " lie in the dump of a rank that they do not name, and are not judged");
    }
  }

 private:
  [[nodiscard]] const Line* line_of(std::int64_t rank) const {
    for (const Line& line : group_.lines) {
      if (line.rank == rank) return &line;
    }
    return nullptr;
  }
  [[nodiscard]] bool wrapped(const Line& line) const {
    const auto& entries = judging_.job.dumps[line.dump].entries;
    return !entries.empty() && entries.front().record_id > 0;
  }

  void judge_pair(std::int64_t from, std::int64_t to, const Pair& pair) {
    const Side& sender = pair.sender;
    const Side& receiver = pair.receiver;
    if (sender.line && receiver.line && !wrapped(*sender.line) && !wrapped(*receiver.line)) {
      const std::size_t both = std::min(sender.all.size(), receiver.all.size());
      for (std::size_t i = 0; i < both; ++i) {
        if (!fit(sender, *sender.all[i], receiver, *receiver.all[i])) return;
      }
      judge_rest(sender, receiver, to, both);
      judge_rest(receiver, sender, from, both);
      return;
    }
    judge_open(sender, receiver, to);
    judge_open(receiver, sender, from);
  }

  /// False, and told, if the two sides move different things.
  bool fit(const Side& sender, const Transfer& send, const Side& receiver,
           const Transfer& receive) {
    const Entry& sent = judging_.entry(*sender.line, send.entry);
    const Entry& received = judging_.entry(*receiver.line, receive.entry);
    // Recorders differ in the side that they fill.
    const auto tensors = [this](const Entry& entry, bool input) {
      const bool empty = judging_.elements.of(input ? entry.inputs : entry.outputs) == 0u;
      return input != empty ? entry.inputs : entry.outputs;
    };
    const Tensors out = tensors(sent, true);
    const Tensors in = tensors(received, false);
    const auto sent_count = judging_.elements.of(out);
    const auto received_count = judging_.elements.of(in);
    if (sent_count == received_count && out.types == in.types) return true;
    Finding finding = begun(FindingKind::transfer_size, sender, send);
    finding.certain = true;
    finding.suspects = {sender.line->rank, receiver.line->rank};
    std::sort(finding.suspects.begin(), finding.suspects.end());
    const auto words = [this](const std::optional<std::uint64_t>& count, const Tensors& of) {
      return (count ? std::to_string(*count) : std::string("too many")) + " elements of " +
             std::string(judging_.text(of.types));
    };
    finding.sentence = "Rank " + std::to_string(send.from) + " sends " + words(sent_count, out) +
                       " to rank " + std::to_string(send.to) + ", which receives " +
                       words(received_count, in) + ", in " +
                       name_of(group_, judging_.job.kept.texts);
    if (is_open(send.phase)) finding.waiting.push_back(send.from);
    if (is_open(receive.phase)) finding.waiting.push_back(send.to);
    judging_.tell(std::move(finding));
    return false;
  }

  [[nodiscard]] Finding begun(FindingKind kind, const Side& side, const Transfer& transfer) const {
    Finding finding;
    finding.kind = kind;
    finding.group = index_;
    const Entry& entry = judging_.entry(*side.line, transfer.entry);
    finding.operation = judging_.text(entry.name);
    finding.where = judging_.text(entry.where);
    return finding;
  }

  /// The other side has fewer: the first of the rest that is open waits for it.
  void judge_rest(const Side& side, const Side& other, std::int64_t other_rank, std::size_t from) {
    for (std::size_t i = from; i < side.all.size(); ++i) {
      if (is_open(side.all[i]->phase))
        return tell(side, *side.all[i], other.line, other_rank, true);
    }
  }
  /// Which of those that are open belong together nobody knows where one is of a batch: that may
  /// have ended, while its batch waits for another one of it.
  void judge_open(const Side& side, const Side& other, std::int64_t other_rank) {
    const auto next_open = [&other](std::size_t at) {
      while (at < other.all.size() && !is_open(other.all[at]->phase)) ++at;
      return at;
    };
    std::size_t there = next_open(0);
    for (const Transfer* transfer : side.all) {
      if (!is_open(transfer->phase)) continue;
      const bool matched = there < other.all.size();
      if (!matched || other.all[there]->in_batch != transfer->in_batch)
        return tell(side, *transfer, other.line, other_rank, !matched && !transfer->in_batch);
      there = next_open(there + 1);
    }
  }

  /// `sure`: it is not there on the other side, if that one has a dump.
  void tell(const Side& side, const Transfer& transfer, const Line* other, std::int64_t other_rank,
            bool sure) {
    const Entry& entry = judging_.entry(*side.line, transfer.entry);
    const bool sends = judging_.text(entry.name) == "send";
    const bool timed_out = transfer.phase == Phase::gave_up;
    const Line& judged = other != nullptr ? *other : *side.line;
    if (!timed_out && !judging_.made_after(judged, entry.created_ns)) {
      judging_.note("Rank " + std::to_string(side.line->rank) + " was waiting for rank " +
                    std::to_string(other_rank) +
                    " when the dumps were made; that is no finding so "
                    "soon (--grace)");
      return;
    }
    Finding finding = begun(FindingKind::transfer, side, transfer);
    finding.timed_out = timed_out;
    finding.waiting = {side.line->rank};
    judging_.time(finding, *side.line, entry);
    sure = sure && other != nullptr;
    (sure ? finding.culprits : finding.suspects) = {other_rank};
    finding.sentence =
        "Rank " + std::to_string(other_rank) +
        (sure || other == nullptr ? " never enqueued the " : " may not have enqueued the ") +
        (sends ? "receive" : "send") + " for which rank " + std::to_string(side.line->rank) +
        " waits in " + (sends ? "a send to" : "a receive from") + " it, in " +
        name_of(group_, judging_.job.kept.texts) + judging_.since_text(finding);
    if (timed_out) finding.sentence += kGaveUp;
    if (!sure && other != nullptr)
      finding.sentence +=
          ", where one of the two is of a batch, which may also wait for another one of it";
    if (other == nullptr)
      finding.sentence += ". There is no file of that rank, which may have done so";
    if (other != nullptr) finding.sentence += judging_.last_of(*other);
    judging_.tell(std::move(finding));
  }

  Judging& judging_;
  const std::size_t index_;
  const Group& group_;
};

}  // namespace

void judge_transfers(Judging& judging, std::size_t group) {
  TransferJudge(judging, group).judge();
}

}  // namespace ringmain::flight
