#include "engine/publish/inline_phase.hpp"

#include <cerrno>

namespace ringmain::engine {
namespace {
void count_in(CallCells::Cell* cell, Atomic<std::uint64_t> CallCells::Cell::*which,
              CallCount& shared) noexcept {
  if (cell != nullptr) {
    count_one(cell->*which);
  } else {
    shared.add(1, Writers::many);
  }
}

Judgement call(Subscriber& subscriber, ChunkPlace lane, const std::byte* event) noexcept {
  CallCells::Cell* const cell = subscriber.cells.of(lane);
  count_in(cell, &CallCells::Cell::offered, subscriber.offered);
  if (subscriber.gate.closed()) {
    count_in(cell, &CallCells::Cell::skipped, subscriber.skipped);
    return {};
  }
  const Judgement judgement = subscriber.judge(subscriber, event);
  if (!judgement.threw) count_in(cell, &CallCells::Cell::delivered, subscriber.delivered);
  return judgement;
}

/// Says whom this thread calls, before it looks at a gate.
[[gnu::always_inline]] inline void show(Shown& word, const Subscriber* whom, bool fenced) noexcept {
  word.store(whom, std::memory_order_release);  // g.shown
  if (fenced) {
    asymmetric_fence_light_or_full();  // l.shown
  } else {
    asymmetric_fence_light();  // l.shown
  }
}

/// It was called, is shown no longer, and was found closed. True: it is in the retire list. Nobody
/// is shown: where the list is closed the captures are destroyed here, which must hold up no
/// removal of the next one.
[[gnu::noinline]] bool leave(Subscriber& last, RetireList& retire_list, bool wakes) noexcept {
  return last.gate.leave_shown(wakes) && retire_list.retire(last);
}

}  // namespace

constinit thread_local std::uint32_t inline_depth __attribute__((tls_model("initial-exec"))) = 0;

InlinePhase show_inline(const Atomic<const Snapshot*>& current, const InlineWords& words,
                        RetireList& retire_list, const std::byte* event, bool wakes) noexcept {
  const int saved = errno;  // a publisher's errno is its own
  const bool fenced = barrier_is_fence();
  Judgement judgement;
  bool retired = false;
  if (const Snapshot* snapshot = protect(current, words.reading)) {
    const CallbackScope scope;
    Subscriber* last = nullptr;
    for (Subscriber* s : snapshot->subscribers) {
      show(words.shown, s, fenced);
      if (last != nullptr && last->gate.closed()) {
        show(words.shown, nullptr, fenced);
        if (leave(*last, retire_list, wakes)) retired = true;
        show(words.shown, s, fenced);
      }
      last = s;
      judgement = call(*s, words.lane, event);
      if (judgement.veto) break;
    }
    show(words.shown, nullptr, fenced);
    if (last != nullptr && last->gate.closed() && leave(*last, retire_list, wakes)) retired = true;
  }
  words.reading.store(nullptr, std::memory_order_release);  // n.unread: the row may be freed
  errno = saved;
  return {judgement, retired};
}

}  // namespace ringmain::engine
