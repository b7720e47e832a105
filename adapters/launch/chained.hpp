// Which tool was there before `ringmain run` took its place?
//
// A variable that has room for one tool is set by the run, and what it was is kept in another one
// (EnvironmentEdit::kept_as). A source's library finds the earlier tool there, and calls it in
// turn.
#pragma once
#include <cstdlib>
#include <dlfcn.h>

#include "adapters/launch/original.hpp"
#include "adapters/launch/say.hpp"

namespace ringmain::run {

/// The function `name` of the library that `variable` names. nullptr where nothing was kept, or
/// what was kept is this library itself, as in a run within a run; and where it cannot be used,
/// which is said of `tool`: "NVTX tool".
template <class F>
[[nodiscard, gnu::visibility("hidden")]] F* chained(const char* variable, const char* name,
                                                    const char* tool, F* ours) noexcept {
  const char* const path = ::secure_getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  auto* const found = found_in<F>(::dlopen(path, RTLD_LAZY | RTLD_LOCAL), name);
  if (found == nullptr) {
    const char* const why = ::dlerror();
    say({"the ", tool, " in ", variable,
         " cannot be used, and ringmain goes on without it: ", why == nullptr ? path : why});
  }
  return found == ours ? nullptr : found;
}

}  // namespace ringmain::run
