// How does a preload that needs only the C library load the rest of ringmain?
//
// By its path, when the program first does what the source watches: from the folder of the preload
// itself, which the loader knows. No search path is used, as the program may have set its own.
// Nothing here needs more than the C library.
#pragma once
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

#include "adapters/launch/original.hpp"

namespace ringmain::run {

/// A library that was installed with the one that this is compiled into. Stays loaded. Allocates
/// nothing but what the loader does.
class [[gnu::visibility("hidden")]] LibraryBeside {
 public:
  /// `file`: from that folder, "libringmain_waits.so" or "../libringmain_run.so.0.1". `mode`: as
  /// dlopen's.
  LibraryBeside(const char* file, int mode) noexcept {
    Dl_info here{};
    // The address of a function of this class, which is hidden, lies in the library that asks.
    if (::dladdr(reinterpret_cast<const void*>(&write_path), &here) == 0 ||
        !write_path(path_, here.dli_fname, file)) {
      return;
    }
    handle_ = ::dlopen(path_, mode);
    if (handle_ != nullptr) return;
    const char* const reason = ::dlerror();
    why_ = reason == nullptr ? path_ : reason;
  }
  LibraryBeside(const LibraryBeside&) = delete;
  LibraryBeside& operator=(const LibraryBeside&) = delete;

  [[nodiscard]] explicit operator bool() const noexcept {
    return handle_ != nullptr;
  }
  /// Why it is not loaded, for a sentence. Valid until this thread's next call to the loader.
  [[nodiscard]] const char* why() const noexcept {
    return why_;
  }
  /// nullptr: it is not loaded, or has no such function.
  template <class F>
  [[nodiscard]] F* function(const char* name) const noexcept {
    return found_in<F>(handle_, name);
  }

 private:
  using Path = char[PATH_MAX];
  /// False where `own` has no folder, or the path is too long.
  static bool write_path(Path & path, const char* own, const char* file) noexcept {
    const char* const slash = own == nullptr ? nullptr : std::strrchr(own, '/');
    if (slash == nullptr) return false;
    const int bytes =
        std::snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(slash - own), own, file);
    return bytes > 0 && static_cast<std::size_t>(bytes) < sizeof path;
  }

  void* handle_ = nullptr;
  const char* why_ = "the folder of ringmain's libraries cannot be told";
  Path path_;
};

}  // namespace ringmain::run
