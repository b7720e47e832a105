// Which compiles are under way, in which epoch, and which graph break does a frame go on after?
//
// What PyTorch announces is put together here: the structured trace and the callbacks tell of the
// same compile, in either order; ids begin again after a reset, perhaps an unannounced one; the
// code after a graph break is compiled later as a frame of its own. No event is published here, and
// no lock is taken. Memory is bounded: of too many open compiles or breaks the oldest are
// forgotten.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "events/compile.hpp"

namespace ringmain::compile {

/// A compile that began and has not ended.
struct OpenCompile {
  Start start;
  std::int64_t began_ns = 0;
  bool traced = false;     // the structured trace knows it and will say how it ended
  bool announced = false;  // a callback's start has been counted in
  bool vetoed = false;
  Name why;
};

/// Threads: one at a time.
class OpenCompiles {
 public:
  static constexpr std::size_t kMost = 256;

  /// nullptr if no compile of that id and trigger is open. Any trigger fits Trigger::unknown.
  OpenCompile* find(const Id& id, Trigger trigger) noexcept;
  [[nodiscard]] OpenCompile* by_span(std::uint64_t span) noexcept;
  /// A compile that only callbacks told of; nullptr if there is none.
  [[nodiscard]] OpenCompile* announced_only() noexcept;
  [[nodiscard]] OpenCompile* newest() noexcept { return open_.empty() ? nullptr : &open_.back(); }
  /// Fills in span, depth and outermost. If `gave_way`, `forgotten` is the one that was dropped.
  OpenCompile& open(const Start& start, std::int64_t now_ns, OpenCompile& forgotten,
                    bool& gave_way);
  /// Ends `compile`, which must not be used afterwards.
  End close(OpenCompile& compile, std::int64_t now_ns) noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return open_.size(); }

 private:
  std::vector<OpenCompile> open_;
  std::uint64_t pair_ = 0;
};

/// Knows by the ids that it sees whether there was a reset.
class Epochs {
 public:
  static constexpr std::size_t kMost = 65536;

  enum class Sign : std::uint8_t { start = 1, phase = 2, callback = 4 };  // once per compile each
  [[nodiscard]] std::uint32_t current() const noexcept { return current_; }
  void reset() noexcept;
  /// A compile begins. True: ids have begun again, current() is a new epoch.
  bool begins(const Id& id, Sign sign);

 private:
  std::unordered_map<std::uint64_t, std::uint8_t> seen_;  // signs by frame and recompile
  std::int32_t highest_frame_ = -1;
  std::uint32_t current_ = 0;
};

/// Joins each frame that goes on with the break that it goes on after.
class Breaks {
 public:
  static constexpr std::size_t kMost = 1024;

  /// Numbers it. `frame_file`: of the frame that is being compiled. `lines`: where functions of its
  /// name in that file stood on the stack then; none where the stack is not known.
  void broke(GraphBreak& said, Name frame_file, std::vector<std::uint32_t> lines);
  /// That compile failed: its code, and what would go on after its breaks, is thrown away.
  void failed(const Id& id);
  /// The break after which this code goes on; nullptr: none is known. It is `resumed` from then
  /// on.
  const GraphBreak* resumes(const Start& start);

 private:
  struct Broken {
    GraphBreak said;
    Name frame_file;
    std::vector<std::uint32_t> lines;
  };
  std::deque<Broken> open_;
  std::uint64_t number_ = 0;
};

}  // namespace ringmain::compile
