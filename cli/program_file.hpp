// Can a library be loaded into a program? Read from the program's file, which may hold anything;
// nothing is executed for that.
#pragma once
#include <string>

namespace ringmain::cli {

/// Why a preload does not work in that program.
struct PreloadHindrance {
  std::string why;     // "" if no hindrance is known
  bool harms = false;  // the program would not run with it, so nothing may be preloaded
};

/// For the program in that file; for a script, for its interpreter.
[[nodiscard]] PreloadHindrance preload_hindrance(const std::string& path);

}  // namespace ringmain::cli
