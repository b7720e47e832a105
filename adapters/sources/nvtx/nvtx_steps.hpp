// Which ranges are training steps, and which are phases of one?
//
//   step=MESSAGE[@DOMAIN]     the range is a step; * stands for any text, no @ for the default
//   domain phase=MESSAGE[@DOMAIN]    the range is a phase of the step that it is in
//
// Several, divided by commas. They are said on `train.step`. A step's number is the first one in
// its message after what stands before the pattern's first *, else the range's integer payload,
// else it is counted, from 1. A phase is called like its message, as far as that has no number.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bus/bus.hpp"

#include "events/nvtx.hpp"
#include "events/step.hpp"

namespace ringmain::nvtx {

/// What a range is to the steps. Kept with it until it ends.
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

  /// `given` begins: what is it? Threads: any, for numbers are counted here.
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

/// Is anybody listening for steps of ranges? Progress: two loads.
[[nodiscard]] bool steps_wanted() noexcept;
/// A range begins: what it is to the steps. Nothing is said yet. Its phase's name takes a lock.
[[nodiscard]] Part part_of(const Range& begun) noexcept;
void publish_begin(const Part& part) noexcept;
void publish_end(const Part& part, std::int64_t took_ns) noexcept;

/// Does the text fit the pattern, in which * is any text?
[[nodiscard]] bool fits(std::string_view text, std::string_view pattern) noexcept;

}  // namespace ringmain::nvtx
