// Which processes of a run take no part in it, though a library of ours is in them?
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

#include "ringmain/adapters/run.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define RINGMAIN_RUN_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define RINGMAIN_RUN_SANITIZED 1
#endif

namespace ringmain::run {
namespace {

#if !defined(RINGMAIN_RUN_SANITIZED)
/// Instrumentation that this library does not have, and that takes what it does for the program's
/// faults: the program would end with a report, and another status.
std::string_view foreign_sanitizer() noexcept {
  if (::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr) return "ThreadSanitizer";
  if (::dlsym(RTLD_DEFAULT, "__msan_init") != nullptr) return "MemorySanitizer";
  return {};
}
#else
std::string_view foreign_sanitizer() noexcept {
  return {};
}
#endif

bool decide() {
  const std::string_view sanitizer = foreign_sanitizer();
  if (sanitizer.empty()) return true;
  std::string line = "ringmain: nothing is heard from ";
  line += ::program_invocation_short_name;
  line += " (pid " + std::to_string(::getpid()) + "): it was built with ";
  line += sanitizer;
  line += ", which would take what ringmain does for faults of the program\n";
  // Past the sanitizer, which looks at what is given to write().
  (void)::syscall(SYS_write, STDERR_FILENO, line.data(), line.size());
  return false;
}

}  // namespace

bool takes_part() {
  static const bool decided = decide();
  return decided;
}

}  // namespace ringmain::run
