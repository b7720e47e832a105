// How much memory has this process?
#pragma once
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>

namespace ringmain::bench {

/// Bytes that it has touched, to the page: the kernel walks its tables, where /proc/self/statm has
/// counters of processors that lag behind.
inline double resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    if (word != "Rss:") continue;
    double kib = 0;
    rollup >> kib;
    return kib * 1024;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ringmain::bench
