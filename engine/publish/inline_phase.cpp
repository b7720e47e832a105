#include "engine/publish/inline_phase.hpp"

#include <cerrno>

namespace ringmain::engine {
namespace {
// Initial-exec: never allocated on a publisher's first use.
thread_local std::uint32_t inline_depth __attribute__((tls_model("initial-exec"))) = 0;

Judgement show_to(Subscriber& subscriber, const std::byte* event) noexcept {
  subscriber.offered.add(1, Writers::many);
  if (!subscriber.gate.enter()) {
    subscriber.skipped.add(1, Writers::many);
    return {};
  }
  const CallbackScope scope;
  return subscriber.judge(subscriber, event);
}
}  // namespace

InlineDepth::InlineDepth() noexcept : level_(inline_depth++) {}
InlineDepth::~InlineDepth() {
  --inline_depth;
}

InlinePhase show_inline(const Atomic<const Snapshot*>& current, Reading& reading,
                        RetireList& retire_list, const std::byte* event, bool wakes) noexcept {
  const int saved = errno;  // a publisher's errno is its own
  InlinePhase phase;
  if (const Snapshot* snapshot = protect(current, reading)) {
    for (Subscriber* s : snapshot->subscribers) {
      phase.judgement = show_to(*s, event);
      if (s->gate.leave_to_retire(wakes) && retire_list.retire(*s)) phase.retired = true;
      if (phase.judgement.veto) break;
    }
  }
  reading.store(nullptr, std::memory_order_release);  // n.unread: the row may be freed
  errno = saved;
  return phase;
}

}  // namespace ringmain::engine
