// How was the program called?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/nccl/stage.hpp"

namespace ringmain::nccl_conformance {

struct Options {
  std::string plugin;
  std::vector<const Scenario*> scenarios;  // all, if none is named
  std::vector<int> versions;               // all that the plugin exports
  std::vector<Release> releases;  // if none is named, those that call a version in different ways
  std::uint64_t seed = 1;
  int rounds = 5;  // of the random scenario, each with a further seed
  double patience_s = 10;
  bool own_mask = false;
  bool serial = false;
  bool json = false;
};

constexpr int kConforms = 0;
constexpr int kDoesNot = 1;
constexpr int kWrongUsage = 2;
constexpr int kHarnessFailed = 3;

/// Returns -1 and fills `options`, or prints what there is to say and returns the exit status.
int read_options(int count, char** words, const char* version, Options& options);
/// Prints what is wrong with the call. Returns kWrongUsage.
int wrong(const std::string& sentence);

const char* text_of(Release release) noexcept;

}  // namespace ringmain::nccl_conformance
