// What does a process have of its NCCL, whoever listens? Open spans, communicators, counts. Made
// once, when a communicator is initialized or a source attached, and never freed: NCCL may call
// until the process is gone.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/system/fork.hpp"
#include "engine/system/presence.hpp"
#include "engine/system/token_notes.hpp"

#include "adapters/sources/nccl/nccl_attachment.hpp"
#include "adapters/sources/nccl/nccl_communicators.hpp"
#include "adapters/sources/nccl/nccl_counters.hpp"
#include "adapters/sources/nccl/nccl_span.hpp"
#include "adapters/sources/nccl/nccl_words.hpp"

namespace ringmain::nccl {

class Chain;

/// What is kept of a span that plugins behind ringmain's alone are told of: what they gave for it,
/// and at kPassedOf the token of its communicator, or else how many had been opened.
using Passed = engine::TokenNotes<kChainMax + 1>;
enum : std::size_t { kPassedOf = kChainMax };

struct Core : engine::Born {
  enum : std::size_t { kSpans = Spans::kPlacesMax, kTries = 512 };

  /// Spans that are over may be kept for what belongs to them: a part of the table for each
  /// communicator that is open, and that for as many as `most` at most.
  [[nodiscard]] std::uint32_t kept(std::uint32_t most) const noexcept {
    const std::uint32_t share = kSpans / 4 / std::max(communicators.opened(), 1U);
    return std::min(most, share);
  }
  [[nodiscard]] Tally& tally_of(const OpenSpan& span) noexcept {
    return span.of == nullptr ? others : span.of->spans;
  }
  /// Looks at each span that is open. `f(pin)`.
  template <class F>
  void for_each_span(F f) noexcept {
    looked_at.add(spans.for_each(f));
  }
  /// The process's. In a forked child the parent's, which is inert. Throws std::bad_alloc.
  static Core& instance();

  /// Throws std::bad_alloc.
  Core();

 private:
  /// Another process has others, most likely.
  struct Cookies {
    std::uint32_t spans = 0, communicators = 0, passed = 0;
  };
  static Cookies draw_cookies() noexcept;
  const Cookies cookies_;

 public:
  Spans spans;
  Passed passed;
  Communicators communicators;
  Counters& counts;  // the switchboard's
  Words words;
  Tally others;                             // spans of no communicator
  engine::Figure<std::uint64_t> looked_at;  // places of the table, or of a communicator's rings
  const std::int32_t process;
  std::atomic<Chain*> chain{nullptr};  // never freed
};

struct Switchboard {
  engine::Presence presence;             // threads that are in a callback
  std::atomic<Core*> core{nullptr};      // nullptr: there is none yet
  std::atomic<Attachment*> to{nullptr};  // nullptr: nothing is published
  std::atomic<Types> needed{0};          // types that somebody wants; 0: look no further
  std::atomic<Types> followed{0};        // of which events are made; others are passed on at most
  std::atomic<std::int64_t> followed_since_ns{0};  // of operations, without a pause; 0: of none
  std::atomic<bool> masked{false};  // another has written what NCCL is asked for, and it stands
  Counters counts;                  // also of what comes where there is no memory for a core
};
extern constinit Switchboard switchboard;

/// While it lives its thread is inside: what it found of the switchboard stays. False: it is not
/// let in, or this is a forked child.
class Inside {
 public:
  Inside() noexcept : in_(switchboard.presence.enter()) {
    if (find_core()) to_ = switchboard.to.load();  // seq_cst: entered first, as Presence asks
  }
  /// For one that the caller holds, which may have left the switchboard.
  explicit Inside(Attachment& held) noexcept : in_(switchboard.presence.enter()) {
    if (find_core()) to_ = &held;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (in_) switchboard.presence.leave();
  }
  [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
  [[nodiscard]] Core& core() const noexcept { return *core_; }
  /// nullptr: nothing is published.
  [[nodiscard]] Attachment* to() const noexcept { return to_; }
  /// False: for its thread there was no memory, which is counted where something is lost by it.
  [[nodiscard]] bool entered() const noexcept { return in_; }

 private:
  bool find_core() noexcept {
    core_ = in_ ? switchboard.core.load() : nullptr;
    if (core_ != nullptr && core_->forked()) core_ = nullptr;
    return core_ != nullptr;
  }
  const bool in_;
  Core* core_ = nullptr;
  Attachment* to_ = nullptr;
};

}  // namespace ringmain::nccl
