// Which function does a name lead to, in a library that stands between a program and what it calls?
//
// All three functions are hidden: RTLD_NEXT is answered for the library that asks, so each library
// needs a copy of its own. Nothing here needs more than the C library.
#pragma once
#include <dlfcn.h>

namespace ringmain::run {

/// What the program would call if this library were not there; nullptr: nothing. Not in a child of
/// a program with threads: dlsym takes the loader's lock.
template <class F>
[[nodiscard, gnu::visibility("hidden")]] F* original(const char* name) noexcept {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// What the program itself finds under that name, which may be a function of ringmain.
template <class F>
[[nodiscard, gnu::visibility("hidden")]] F* seen_by_all(const char* name) noexcept {
  return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

/// What `library` has under that name; nullptr where it has not, or there is no library.
template <class F>
[[nodiscard, gnu::visibility("hidden")]] F* found_in(void* library, const char* name) noexcept {
  return library == nullptr ? nullptr : reinterpret_cast<F*>(::dlsym(library, name));
}

}  // namespace ringmain::run
