// Which of a thread's calls is the outermost one? A call of the runtime (cudaMalloc) makes calls of
// the driver (cuMemAlloc), and CUPTI tells of all of them; what the program called is one event.
//
// Each thread keeps its outermost call, and how deep it is in that. CUPTI has a slot for each call,
// in which the entry leaves a tag and the exit finds it: an exit is believed only with the tag of
// this thread's call under way, so that one whose entry was not heard does nothing.
//
// An exit may never be heard: its number was switched off meanwhile, the source left, the call was
// left by longjmp(). So each entry asks whether the outermost call is still under way:
// - two calls under way never share a slot;
// - a call of the runtime makes calls of the driver only, one of them of its own kind, and a call
//   of the driver makes none;
// - tools may synchronize inside their callbacks, and call nothing else there;
// - a call through the wrapper (traced.hpp) makes one call of the runtime, of its own kind, and
//   what that makes. It is always the outermost, and leaves in any case but by longjmp().
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "events/cuda.hpp"
#include "events/terms/cuda_call_table.hpp"

namespace ringmain::cuda {

[[nodiscard]] constexpr bool synchronizes(CallKind kind) noexcept {
  return kind == CallKind::device_synchronization || kind == CallKind::stream_synchronization ||
         kind == CallKind::event_synchronization;
}

/// A number's switch: odd while its calls are to be told. Only the thread that holds the source's
/// lock changes it, before it enables the number and when nobody needs it any more; each time the
/// value grows, so that a call can tell whether its own number was switched off after its entry.
class Switch {
 public:
  [[nodiscard]] std::uint32_t look() const noexcept { return turns_; }
  [[nodiscard]] static constexpr bool on(std::uint32_t turns) noexcept { return turns % 2 != 0; }
  [[nodiscard]] bool on() const noexcept { return on(turns_); }
  void turn() noexcept { ++turns_; }

 private:
  std::atomic<std::uint32_t> turns_{0};
};
using Switches = Switch[call_rows().size()];

/// The outermost call that a thread is in.
struct CallUnderWay {
  const CallRow* row = nullptr;
  std::int64_t began_ns = 0;      // 0: nobody listened when it began
  std::uint64_t correlation = 0;  // 0: not drawn yet
  bool muted = false;             // it is a subscriber's own
  bool told = false;              // an event was published at its entry
  bool context_told = false;      // the change of a context that it makes was published
  bool released = false;          // a live handle died at its entry
  bool wrapped = false;           // it came through the wrapper
  bool refused = false;           // a subscriber refused it: it is not made
  // Of a wrapped call: the runtime's device, and the context that CUPTI tells of the calls within.
  std::int32_t device = kNoDevice;
  std::uint32_t context_uid = 0;
  void* context = nullptr;
};

/// What is known of the attachment that hears the calls.
struct Hearer {
  const Switches& switches;
  std::uint32_t number;  // of the attachment, 20 bits: calls that another one heard are over
};

/// Of one thread, used by it alone. Trivially destructible: calls may come after a thread's own
/// objects are gone.
class Guard {
 public:
  /// At the entry of a call whose switch was seen as `turns`. Leaves its tag in the slot;
  /// outermost() is right until the next call begins.
  void enter(const CallRow& row, std::uint32_t turns, const Hearer& to,
             std::uint64_t& slot) noexcept {
    switch (now_.depth == 0 ? Place::after : place_of(row, to, slot)) {
      case Place::inside:
        now_.own_made |= row.call.kind == now_.call.row->call.kind;
        break;
      case Place::beside:
        below_ = std::exchange(now_, {});
        break;
      case Place::after:
        now_.depth = below_.depth = 0;
        break;
    }
    if (now_.depth == 0) {
      now_ = {.call = {.row = &row},
              .serial = ++last_serial_,
              .slot = &slot,
              .turns = turns,
              .number = to.number};
    }
    if (now_.depth < kDepthMax) ++now_.depth;
    slot = now_.tag(now_.depth);
  }
  /// At the entry of a call through the wrapper, which has the slot itself.
  void enter_wrapped(const CallRow& row, std::uint32_t number, std::uint64_t& slot) noexcept {
    below_ = {};
    now_ = {.call = {.row = &row, .wrapped = true},
            .serial = ++last_serial_,
            .slot = &slot,
            .number = number,
            .depth = 1};
    slot = now_.tag(now_.depth);
  }
  /// The wrapper's call that a call of CUPTI's is inside of, or nullptr.
  [[nodiscard]] CallUnderWay* wrapped(const Hearer& to) noexcept {
    const bool inside = now_.depth > 1 && now_.call.wrapped && now_.number == to.number;
    return inside ? &now_.call : nullptr;
  }
  /// Is the call that has just been entered the thread's outermost?
  [[nodiscard]] bool outermost() const noexcept { return now_.depth == 1; }
  /// At an exit with the tag that was found in its slot: the outermost call, if it is that one's.
  std::optional<CallUnderWay> leave(std::uint64_t found, const Hearer& to) noexcept {
    return leave(found, to.number);
  }
  std::optional<CallUnderWay> leave(std::uint64_t found, std::uint32_t number) noexcept {
    if (below_.depth != 0 && below_.left(found, number))
      now_ = std::exchange(below_, {});
    else if (!now_.left(found, number))
      return std::nullopt;
    if (now_.depth != 0) return std::nullopt;
    const CallUnderWay ended = now_.call;
    if (below_.depth != 0) now_ = std::exchange(below_, {});
    return ended;
  }
  /// The outermost call, if it is still under way for all that can be told, and may do something of
  /// this kind; or nullptr.
  [[nodiscard]] CallUnderWay* under_way(CallKind kind, const Hearer& to) noexcept {
    return now_.depth != 0 && now_.number == to.number && may_do(kind, to) ? &now_.call : nullptr;
  }
  /// After enter(), if outermost().
  [[nodiscard]] CallUnderWay& call() noexcept { return now_.call; }

 private:
  friend class Aside;
  static constexpr std::uint32_t kDepthMax = 255;

  struct Outermost {
    CallUnderWay call;
    std::uint64_t serial = 0;
    const std::uint64_t* slot = nullptr;
    std::uint32_t turns = 0;  // of its switch at its entry
    std::uint32_t number = 0;
    std::uint32_t depth = 0;  // 0: the thread is in no call, and nothing else here counts
    bool own_made = false;    // it has made a call of its own kind

    /// 20 bits of the attachment's number, 36 of the thread's number of the call, 8 of the depth.
    [[nodiscard]] std::uint64_t tag(std::uint32_t at) const noexcept {
      return std::uint64_t{number} << 44 | (serial << 8 & 0xfff'ffff'ff00) | at;
    }
    /// Is it the tag of this call or of one within it? Then that one has ended, and those within
    /// it, whose exits were not heard.
    bool left(std::uint64_t found, std::uint32_t to) noexcept {
      const auto level = static_cast<std::uint32_t>(found % (kDepthMax + 1));
      if (level == 0 || level > depth || number != to || found != tag(level)) return false;
      depth = level - 1;
      return true;
    }
  };

  enum class Place : std::uint8_t {
    inside,  // the outermost call makes it
    beside,  // nobody can tell whether the outermost call has ended
    after    // the outermost call has ended
  };
  [[nodiscard]] Place place_of(const CallRow& row, const Hearer& to,
                               const std::uint64_t& slot) const noexcept {
    if (now_.number != to.number || now_.slot == &slot) return Place::after;
    if (now_.call.wrapped && made_by_wrapped(row)) return Place::inside;
    const bool makes_calls = now_.call.row->domain == CallDomain::runtime;
    if (makes_calls && row.domain == CallDomain::driver)
      return may_do(row.call.kind, to) ? Place::inside : Place::after;
    return synchronizes(row.call.kind) ? Place::beside : Place::after;
  }
  [[nodiscard]] bool made_by_wrapped(const CallRow& row) const noexcept {
    if (row.domain == CallDomain::driver) return true;
    return row.call.kind == now_.call.row->call.kind && !now_.own_made;
  }
  /// Once its number was switched off its exit may have been missed: only the one call of its own
  /// kind that it has not made yet is taken for its.
  [[nodiscard]] bool may_do(CallKind kind, const Hearer& to) const noexcept {
    if (now_.call.wrapped) return true;  // its exit does not depend on CUPTI
    const CallRow& row = *now_.call.row;
    const auto place = static_cast<std::size_t>(&row - call_rows().data());
    return to.switches[place].look() == now_.turns || (kind == row.call.kind && !now_.own_made);
  }

  Outermost now_;
  Outermost below_;  // the one that `now_` is beside: its exit may come
  std::uint64_t last_serial_ = 0;
};

/// While it lives the thread is in no call: an event is published, and inline subscribers may call
/// CUDA. Costs nothing where the thread is in none anyway.
class Aside {
 public:
  explicit Aside(Guard& guard) noexcept : guard_(guard) {
    if (guard.now_.depth == 0) return;
    kept_ = guard;
    guard.now_ = guard.below_ = {};
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    if (!kept_) return;
    const std::uint64_t last = guard_.last_serial_;
    guard_ = *kept_;
    guard_.last_serial_ = last;
  }

 private:
  Guard& guard_;
  std::optional<Guard> kept_;
};

}  // namespace ringmain::cuda
