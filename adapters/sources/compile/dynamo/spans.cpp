#include "adapters/sources/compile/dynamo/spans.hpp"

#include <algorithm>
#include <utility>

#include "adapters/sources/compile/dynamo/span_id.hpp"
#include "adapters/sources/compile/dynamo/text.hpp"
#include "adapters/sources/compile/ids.hpp"

namespace ringmain::compile {

OpenCompile* OpenCompiles::find(const Id& id, Trigger trigger) noexcept {
  const auto found = std::find_if(open_.rbegin(), open_.rend(), [&](const OpenCompile& one) {
    return same_compile(one.start, id) &&
           (trigger == Trigger::unknown || trigger == one.start.trigger);
  });
  return found == open_.rend() ? nullptr : &*found;
}

OpenCompile* OpenCompiles::by_span(std::uint64_t span) noexcept {
  const auto found = std::find_if(open_.begin(), open_.end(), [span](const OpenCompile& one) {
    return one.start.span == span;
  });
  return found == open_.end() ? nullptr : &*found;
}

OpenCompile* OpenCompiles::announced_only() noexcept {
  const auto found = std::find_if(open_.begin(), open_.end(), [](const OpenCompile& one) {
    return one.announced && !one.traced;
  });
  return found == open_.end() ? nullptr : &*found;
}

OpenCompile& OpenCompiles::open(const Start& start, std::int64_t now_ns, OpenCompile& forgotten,
                                bool& gave_way) {
  gave_way = open_.size() >= kMost;
  if (gave_way) {
    forgotten = open_.front();
    open_.erase(open_.begin());
  }
  OpenCompile& one = open_.emplace_back();
  one.start = start;
  one.start.span = new_span();
  one.start.depth = static_cast<std::uint32_t>(open_.size() - 1);
  one.start.outermost = open_.size() == 1;
  if (one.start.outermost) ++pair_;
  one.start.pair = pair_;
  one.began_ns = now_ns;
  return one;
}

End OpenCompiles::close(OpenCompile& compile, std::int64_t now_ns) noexcept {
  End said;
  static_cast<Span&>(said) = compile.start;
  said.took_ns = now_ns - compile.began_ns;
  if (compile.vetoed) {
    said.outcome = Outcome::cancelled;
    said.reason = compile.why;
  }
  open_.erase(open_.begin() + (&compile - open_.data()));
  said.outermost = open_.empty();
  said.pair = pair_;
  return said;
}

void Epochs::reset() noexcept {
  ++current_;
  seen_.clear();
  highest_frame_ = -1;
}

bool Epochs::begins(const Id& id, Sign sign) {
  if (id.frame < 0) return false;
  const auto bit = static_cast<std::uint8_t>(sign);
  // Compiled autograd's own ids count on their own; its low bits tell them apart.
  const std::uint64_t key =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(id.frame)) << 32) |
      ((static_cast<std::uint32_t>(id.recompile) & 0xffffffu) |
       ((static_cast<std::uint32_t>(id.autograd) & 0xffu) << 24));
  const auto known = seen_.find(key);
  const bool again = known != seen_.end() && (known->second & bit) != 0;
  // Frames are numbered as they come, so a first compile of an earlier one is of another epoch.
  const bool earlier = known == seen_.end() && id.recompile == 0 && id.frame < highest_frame_;
  if (again || earlier) reset();
  if (seen_.size() >= kMost) seen_.clear();
  seen_[key] |= bit;
  highest_frame_ = std::max(highest_frame_, id.frame);
  return again || earlier;
}

void Breaks::broke(GraphBreak& said, Name frame_file, std::vector<std::uint32_t> lines) {
  said.number = ++number_;
  if (open_.size() >= kMost) open_.pop_front();
  open_.push_back({said, frame_file, std::move(lines)});
}

void Breaks::failed(const Id& id) {
  std::erase_if(open_, [&id](const Broken& one) { return same_compile(one.said, id); });
}

const GraphBreak* Breaks::resumes(const Start& start) {
  const ResumeText resume = read_resume(start.function.view());
  if (resume.function.empty()) return nullptr;
  Broken* best = nullptr;
  int best_rank = -1;
  for (Broken& one : open_) {
    if (one.said.reset != start.reset || one.frame_file != start.file) continue;
    const ResumeText rest = read_resume(one.said.function.view());
    const std::string_view function =
        rest.function.empty() ? one.said.function.view() : rest.function;
    if (function != resume.function) continue;
    // The two sides of a branch go on in two new frames; a frame compiled again is no new one.
    const bool resumed = one.said.what == GraphBreak::What::resumed;
    if (resumed && (start.recompile != 0 || one.said.line != resume.line)) continue;
    const bool own_line =
        one.said.line == resume.line ||
        std::find(one.lines.begin(), one.lines.end(), resume.line) != one.lines.end();
    // What is compiled again may go on after no new break at all, so its line must be the break's;
    // a new rest goes on after one, whose line may be that of a like-named function it had called.
    if (!own_line && start.recompile != 0 && !one.lines.empty()) continue;
    const int rank = (resumed ? 0 : 2) + (own_line ? 1 : 0);
    if (rank < best_rank) continue;  // the youngest of equals is taken
    best = &one;
    best_rank = rank;
  }
  if (best == nullptr) return nullptr;
  best->said.what = GraphBreak::What::resumed;
  best->said.resume_frame = start.frame;
  best->said.resume_recompile = start.recompile;
  return &best->said;
}

}  // namespace ringmain::compile
