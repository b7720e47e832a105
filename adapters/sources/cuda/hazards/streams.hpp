// Which streams are there, what comes before what they do next, and which of them capture?
//
// The legacy default stream of a context first waits for all streams of the context that were not
// made non-blocking, and what these do afterwards waits for it. So its clock is joined with theirs
// when something is put on it, and theirs with its when something is put on them.
//
// A place in the clocks is given to another stream once the host has waited for all that its last
// stream did or waited for, since that comes before everything to come.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "adapters/sources/cuda/hazards/clock.hpp"

namespace ringmain::cuda::hazards {

/// maybe: it was not heard from its beginning, or waited for an event that may be of a capture.
enum class Captures : std::uint8_t { no, maybe, yes };

struct Stream {
  std::uint64_t handle = 0;
  std::uint32_t context = 0;  // 0: not known, so any
  bool taken = false;         // the place is in use
  bool live = false;
  bool blocking = true;  // waits for the legacy stream, and that one for it
  bool legacy = false;
  Captures captures = Captures::no;
  std::uint64_t capture = 0;  // yes: which one
  std::uint64_t doubted = 0;  // maybe: since which event
  std::uint64_t ended = 0;    // not live: since which event
  std::uint64_t uses = 0;     // counts on when the place changes hands
  Clock seen;                 // what comes before what it does next
};

/// Threads: one at a time.
class Streams {
 public:
  explicit Streams(std::size_t most) : most_(most) {}

  /// Each event that is heard has a number of its own, rising from 1.
  void tick() noexcept { ++now_; }
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }

  /// A context that is heard of. `from_birth`: its making was heard.
  void see_context(std::uint32_t context, bool from_birth);
  /// Nothing captures there but what was heard to begin.
  void clear_of_captures(std::uint32_t context, std::uint64_t asked_at);
  /// So it is in all contexts that were heard of, which must be one at least.
  [[nodiscard]] bool clear_of_captures() const noexcept;
  /// The event from which on it is known so; 0: it is not. What was doubted before is settled.
  [[nodiscard]] std::uint64_t cleared_at() const noexcept {
    return clear_of_captures() ? cleared_ : 0;
  }

  /// The place of a stream as a call names it; one that was not heard of gets a place. Nothing:
  /// there is no room, or it cannot be told of which context a default stream is.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t handle, std::uint32_t context,
                                                std::int32_t thread);
  /// False: there is no room.
  [[nodiscard]] bool make(std::uint64_t handle, std::uint32_t context, bool blocking);
  void end(std::uint64_t handle);
  /// CUDA refused to delete it.
  void restore(std::uint64_t handle);

  Stream& operator[](std::size_t place) { return all_[place]; }
  /// Something is put on it: joins what that waits for by itself.
  void act(std::size_t place);
  void doubt(std::size_t place) noexcept;
  /// What a synchronization with a context waits for; 0: with all.
  [[nodiscard]] Clock position(std::uint32_t context) const;

  void begin_capture(std::size_t place);
  /// `sound`: it became a graph.
  void end_capture(std::size_t place, bool sound) noexcept;
  /// The stream waits for an event of that capture, and so becomes part of it.
  void join_capture(std::size_t place, std::uint64_t capture) noexcept;
  [[nodiscard]] bool is_capture(std::uint64_t capture) const noexcept;

  Clock host;  // what comes before everything that any thread puts on a stream from here on

 private:
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::int32_t>;
  struct Context {
    std::uint32_t number;
    bool clear;
  };
  [[nodiscard]] std::optional<std::size_t> take_place();
  [[nodiscard]] static bool shares(const Stream& stream, std::uint32_t context) noexcept {
    return stream.context == context || stream.context == 0 || context == 0;
  }

  std::size_t most_;
  std::uint64_t now_ = 0;
  std::uint64_t captures_ = 0;
  std::uint64_t cleared_ = 0;
  std::vector<Stream> all_;
  std::map<Key, std::size_t> live_;
  std::vector<Context> contexts_;
};

}  // namespace ringmain::cuda::hazards
