// What works on this machine, and how can the rest be mended? One finding for each thing checked.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ringmain::cli {

struct Finding {
  enum class State : std::uint8_t {
    good,
    note,    // works, and could be better
    problem  // does not work
  };
  std::string name;
  State state = State::good;
  std::string found;
  std::string mend;  // what to do; "" where all is good
};

/// Looks, measures and tries. Takes some hundred milliseconds, and what the driver of CUDA needs to
/// start, 20 s at most.
[[nodiscard]] std::vector<Finding> examine();
/// Of CUDA's driver and of CUPTI, and which other tool is in the way.
[[nodiscard]] Finding examine_cuda();
/// Of NCCL's plugin, and which other is in its place.
[[nodiscard]] Finding examine_nccl();
/// Of the flight recorder: where its files go, for how long, and how many find room there.
[[nodiscard]] Finding examine_flight();
/// Of doors: where their sockets go, and how many processes answer there.
[[nodiscard]] Finding examine_door();

}  // namespace ringmain::cli
