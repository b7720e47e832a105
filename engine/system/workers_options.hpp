// How many threads does a bus have, and how do they live?
#pragma once
#include <string>
#include <vector>

#include "wait_strategy.hpp"

namespace ringmain::engine {

struct WorkersOptions {
  unsigned count = 1;
  std::vector<int> cpus;  // empty: inherit
  int nice = 0;
  std::string name = "ringmain";
  WaitOptions wait;
  bool manual = false;  // no thread is started: the threads that call deliver() do the work
};

}  // namespace ringmain::engine
