// Which tool was there before `ringmain run` took its place?
//
// The run sets a variable that has room for one tool only, and keeps its earlier value in another
// variable (EnvironmentEdit::kept_as). A source's library finds the earlier tool there, and passes
// each call on to it.
#pragma once
#include <cstdlib>
#include <dlfcn.h>

#include "adapters/launch/original.hpp"
#include "adapters/launch/say.hpp"

namespace ringmain::run {

/// The function `name` of the library that `variable` names. nullptr where no value was kept, where
/// it is this library itself, as in a run within a run, or where the library cannot be used, which
/// is said with the word in `tool`, "NVTX tool", and the variable that the user has set.
template <class F>
[[nodiscard, gnu::visibility("hidden")]] F* chained(const char* variable, const char* name,
                                                    const char* tool, const char* users,
                                                    F* ours) noexcept {
  const char* const path = ::secure_getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  auto* const found = found_in<F>(::dlopen(path, RTLD_LAZY | RTLD_LOCAL), name);
  if (found == nullptr) {
    const char* const why = ::dlerror();
    say({"the ", tool, " that ", users,
         " named before the run cannot be used, and ringmain goes on without it: ",
         why == nullptr ? path : why});
  }
  return found == ours ? nullptr : found;
}

}  // namespace ringmain::run
