// Runs each scenario in a process of its own, and says what became of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/nccl/stage.hpp"

namespace ringmain::nccl_conformance {

struct Trial {
  std::string plugin;
  const Scenario* scenario = nullptr;
  int version = 0;
  Stage::Options options;
  double patience_s = 10;  // so long may a function of the plugin take while nothing else is called
};

struct Outcome {
  std::vector<Finding> findings;
  std::uint64_t calls = 0;  // of the plugin
  bool harness_failed = false;
  std::string said;  // why, if the harness failed
};

/// The ABI versions, of those wanted (all, where none is), that the plugin exports, newest first.
/// In `findings`: why it cannot be opened, or that a table is not whole, and why there is none.
std::vector<int> versions_of(const std::string& plugin, const std::vector<int>& wanted,
                             std::vector<Finding>& findings);

/// Threads: the calling process has one. Blocks until the scenario is over.
Outcome judge(const Trial& trial);

}  // namespace ringmain::nccl_conformance
