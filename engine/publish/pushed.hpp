// How does a publish on a lane end? One word, with the reason of a veto.
#pragma once
#include <cstdint>

namespace ringmain {

/// How a publish ended. As wide as a Name, so that a result has no padding, for which the compiler
/// would assemble it anew at every publish.
enum class PublishCode : std::uint32_t {
  accepted,  // will be dispatched, or counted: evicted (drop_oldest), discarded by stop(abort)
  unheard,   // nobody listens: not offered, not counted, no sequence number
  full,      // no room: drop_newest, or block ran out of time, or drop_oldest is far ahead
  closed,    // after stop() began, or the publisher is empty
  would_deadlock,  // full, and blocking was refused: the caller is a worker
  no_memory,       // a lane or a block of the queue could not be allocated
  too_deep,  // published in the middle of another publish on the same lane (by what builds its
             // event, or by a signal handler), or nested in more than 8 inline callbacks
  vetoed,    // an inline subscriber refused it: PublishResult::why
  forked     // this process is a fork and the bus its parent's: use a bus of its own
};

}  // namespace ringmain

namespace ringmain::engine {

using Pushed = PublishCode;
/// The same with a veto's reason (a name's id, or 0), in one word, which is passed on whole.
class PushResult {
 public:
  PushResult() = default;
  constexpr PushResult(Pushed code) noexcept  // NOLINT(google-explicit-constructor): most are
      : bits_(static_cast<std::uint64_t>(code)) {}
  constexpr PushResult(Pushed code, std::uint32_t why) noexcept
      : bits_(static_cast<std::uint64_t>(code) | std::uint64_t{why} << 32) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  constexpr operator Pushed() const noexcept { return static_cast<Pushed>(bits_); }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(PushResult) == 8);

}  // namespace ringmain::engine
