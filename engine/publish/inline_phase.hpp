// What happens to an event before it is queued? Inline subscribers see it, in the publishing
// thread, by priority; the first veto refuses it.
//
// No lock: the row of subscribers is protected as in drain.cpp (snapshot.hpp), and each call is
// shown (shown.hpp), by words of the lane for each level of nesting, because an inline callback may
// publish again. A subscriber that left meanwhile is retired, not destroyed (retire_list.hpp).
// Models: tests/model/inline_calls.pml, inline_relacy.cpp.
//
// Cost: stores to the thread's own lines; nothing where nobody subscribed inline. Where membarrier
// is refused, a fence for each subscriber and two more.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../subscribe/retire_list.hpp"
#include "../subscribe/shown.hpp"
#include "../subscribe/snapshot.hpp"

namespace ringmain::engine {

// Initial-exec: never allocated on a publisher's first use.
extern constinit thread_local std::uint32_t inline_depth __attribute__((tls_model("initial-exec")));

/// How deep is this thread in inline phases, over all channels and buses?
class InlineDepth {
 public:
  InlineDepth() noexcept : level_(inline_depth++) {}
  ~InlineDepth() { --inline_depth; }
  InlineDepth(const InlineDepth&) = delete;
  InlineDepth& operator=(const InlineDepth&) = delete;
  /// 0 for the outermost.
  [[nodiscard]] std::uint32_t level() const noexcept { return level_; }

 private:
  const std::uint32_t level_;
};

struct InlinePhase {
  Judgement judgement;
  bool retired = false;  // some thread should reclaim it
};
/// What a publishing thread says and counts in its lane, at one level of nesting.
struct InlineWords {
  Reading& reading;  // which row it reads
  Shown& shown;      // whom it calls
  ChunkPlace lane;   // where it counts
};
/// Shows one event to the subscribers in `current`. `wakes`: this thread may make a system call to
/// wake a thread that waits for the end of a call. Progress: lock-free but for the callbacks. Keeps
/// errno.
[[nodiscard]] InlinePhase show_inline(const Atomic<const Snapshot*>& current,
                                      const InlineWords& words, RetireList& retire_list,
                                      const std::byte* event, bool wakes) noexcept;

}  // namespace ringmain::engine
