// What happens to an event before it is queued? Inline subscribers see it, in the publishing
// thread, by priority; the first veto refuses it.
//
// No lock: the row of subscribers is protected as in drain.cpp (snapshot.hpp), by a word of the
// lane for each level of nesting, because an inline callback may publish again. A subscriber that
// left meanwhile is retired, not destroyed (retire_list.hpp). Model: tests/model/inline_relacy.cpp.
//
// Cost: per event and subscriber four read-modify-writes; nothing where nobody subscribed inline.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../subscribe/retire_list.hpp"
#include "../subscribe/snapshot.hpp"

namespace ringmain::engine {

/// How deep is this thread in inline phases, over all channels and buses?
class InlineDepth {
 public:
  InlineDepth() noexcept;
  ~InlineDepth();
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
/// Shows one event to the subscribers in `current`. `reading`: this level's word of the caller's
/// lane. `wakes`: this thread may make a system call to wake a thread that waits for the end of a
/// call. Progress: lock-free but for the callbacks. Keeps errno.
[[nodiscard]] InlinePhase show_inline(const Atomic<const Snapshot*>& current, Reading& reading,
                                      RetireList& retire_list, const std::byte* event,
                                      bool wakes) noexcept;

}  // namespace ringmain::engine
