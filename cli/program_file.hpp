// What does a program's file say about what can be loaded into it? Nothing is executed for that,
// and the file may hold anything.
#pragma once
#include <string>

namespace ringmain::cli {

/// Why a preload does not help there.
struct PreloadHindrance {
  std::string why;     // "" where nothing is known of
  bool harms = false;  // the program would not run with it, so nothing may be preloaded
};

/// Of the program in that file; of a script, of what it is run by.
[[nodiscard]] PreloadHindrance preload_hindrance(const std::string& path);

}  // namespace ringmain::cli
