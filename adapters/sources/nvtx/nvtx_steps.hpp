// Which ranges are training steps, and which are phases of one?
//
//   step=MESSAGE[@DOMAIN]     the range is a step; * stands for any text, no @ for the default
//   domain phase=MESSAGE[@DOMAIN]    the range is a phase of the step that it is in
//
// Several rules stand with commas between them. Steps are published on `train.step`. A step's
// number is the first number in its message after the text that matches what stands before the
// pattern's first *; else the range's integer payload; else a count from 1. A phase has its message
// as its name, without a number in it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bus/bus.hpp"

#include "events/nvtx.hpp"
#include "events/step.hpp"

namespace ringmain::nvtx {

/// What a range means for the steps. Kept with it until it ends.
struct Part {
  enum class Of : std::uint8_t { nothing, step, phase };
  Of of = Of::nothing;
  Name phase;
  std::uint64_t step = 0;
};

class StepRules {
 public:
  /// Refused, with one sentence, where it is not written as above.
  static Result<StepRules> read(std::string_view written);

  /// What is the range `given`, which begins now? Threads: any; it counts numbers.
  [[nodiscard]] Part::Of kind_of(const Range& given, std::uint64_t& number,
                                 bool& numbered) const noexcept;

 private:
  struct Rule {
    Part::Of of;
    std::string message;
    std::string domain;
  };
  std::vector<Rule> rules_;
};

/// Has such ranges published on `bus` from now on. An Error if they are not written as above, or
/// the program has a `train.step` of its own. Threads: one, before any range begins.
Result<bool> publish_steps(Bus& bus, std::string_view written);

/// Is anybody listening for steps of ranges? Two loads. Progress: wait-free.
[[nodiscard]] bool steps_wanted() noexcept;
/// What a range that begins now means for the steps. Publishes nothing yet. The name of a phase
/// takes a lock.
[[nodiscard]] Part part_of(const Range& begun) noexcept;
void publish_begin(const Part& part) noexcept;
void publish_end(const Part& part, std::int64_t took_ns) noexcept;

/// Does the text fit the pattern, in which * is any text?
[[nodiscard]] bool fits(std::string_view text, std::string_view pattern) noexcept;

}  // namespace ringmain::nvtx
