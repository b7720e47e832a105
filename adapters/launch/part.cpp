#include "adapters/launch/part.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "adapters/library_folder.hpp"

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
/// The sanitizer that the program was built with and this library was not, or "". It would take
/// what ringmain does for faults of the program, which would end with a report and another status.
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

std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

/// Is this process left out, by the name with which it was executed (of a script: the script's) or
/// that it has?
bool is_left_out_by_name() {
  const char* const names = std::getenv(kExceptVariable);
  if (names == nullptr) return false;
  const auto* const executed = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  const std::string list = "\n" + std::string(names) + "\n";
  const auto has = [&list](std::string_view name) {
    return !name.empty() && list.find("\n" + std::string(name) + "\n") != list.npos;
  };
  return has(last_part(executed == nullptr ? "" : executed)) ||
         has(::program_invocation_short_name);
}

/// Takes those parts out of a list that lie in ringmain's folder.
std::string without_ours(std::string_view list) {
  const std::string ours = registry::library_folder() + "/";
  std::string kept;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    if (!part.empty() && !part.starts_with(ours))
      kept += (kept.empty() ? "" : ":") + std::string(part);
  }
  return kept;
}

void set_or_clear(const std::string& name, const char* value) {
  value == nullptr || *value == '\0' ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value, 1);
}

/// Puts the environment back as it would be without the run. Variables that were changed since
/// stay, but for ringmain's preloads.
void undo_environment() {
  std::vector<std::string> names;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view one(*at);
    if (one.starts_with("RINGMAIN_RUN")) names.emplace_back(one.substr(0, one.find('=')));
  }
  for (const std::string& name : names) {
    if (!name.starts_with(kSetPrefix)) continue;
    const std::string edited = name.substr(std::string_view(kSetPrefix).size());
    const char* const now = std::getenv(edited.c_str());
    if (now == nullptr) continue;
    if (std::string_view(now) == std::getenv(name.c_str())) {
      set_or_clear(edited, std::getenv((kEarlierPrefix + edited).c_str()));
    } else if (edited == "LD_PRELOAD") {
      set_or_clear(edited, without_ours(now).c_str());
    }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

bool decide() {
  if (is_left_out_by_name()) return false;
  const std::string_view sanitizer = foreign_sanitizer();
  if (sanitizer.empty()) return true;
  std::string line = "ringmain: nothing is heard from ";
  line += ::program_invocation_short_name;
  line += " (pid " + std::to_string(::getpid()) + "): it was built with ";
  line += sanitizer;
  line += ", which would take what ringmain does for faults of the program\n";
  // Not by write(), whose arguments the sanitizer checks: it would report the bytes as not
  // initialised.
  (void)::syscall(SYS_write, STDERR_FILENO, line.data(), line.size());
  return false;
}

}  // namespace

bool takes_part() {
  static const bool decided = decide();
  return decided;
}

void clear_of_run() {
  if (::secure_getenv(kExceptVariable) != nullptr && is_left_out_by_name() && !takes_part()) {
    undo_environment();
  }
}

}  // namespace ringmain::run
