// A preload that loads what lies beside it.
#include <dlfcn.h>

#include "adapters/launch/library_beside.hpp"

extern "C" __attribute__((visibility("default"))) int launch_ask_beside(const char* file) {
  const ringmain::run::LibraryBeside library(file, RTLD_NOW | RTLD_LOCAL);
  auto* const answer = library.function<int()>("launch_answer");
  return answer == nullptr ? 0 : answer();
}
