// How does a test look into a child process? It runs one, with an end that it cannot miss.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "tests/process/alone_awake.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {

enum : unsigned { kChildSecondsMax = 60 };  // then it hangs: SIGALRM ends it

/// What a child finds. Said on its standard error; its exit code is 1 if there was anything.
class Findings {
 public:
  void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "in the child: %s\n", what);
    code_ = 1;
  }
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_ = 0;
};

/// In words: "exited with 0", "killed by 14 (Alarm clock)".
inline std::string in_words(int status) {
  if (WIFEXITED(status)) return "exited with " + std::to_string(WEXITSTATUS(status));
  if (!WIFSIGNALED(status)) return "status " + std::to_string(status);
  return "killed by " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
         ")" + (WTERMSIG(status) == SIGALRM ? ": it hung" : "");
}

inline std::string ended(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return in_words(status);
}

/// How often: `release` times in a release build, fewer where everything is checked, or as often as
/// the environment's `variable` says.
inline unsigned rounds(const char* variable, unsigned release) {
  if (const char* asked = std::getenv(variable)) return static_cast<unsigned>(std::atoi(asked));
  return is_sanitized() ? release / 5 + 1 : release;
}

enum class Leave { by_exit, by_underscore_exit };  // with static destructors, or without

/// Forks and runs `body(Findings&)` in the child; says how it ended.
template <class Body>
std::string in_child(Body body, Leave leave = Leave::by_exit) {
  std::fflush(nullptr);  // or the child says it again
  if (is_sanitized()) wait_until_alone_awake();
  const pid_t child = ::fork();
  if (child < 0) return "could not fork";
  if (child == 0) {
    ::alarm(kChildSecondsMax);
    Findings findings;
    body(findings);
    if (leave == Leave::by_exit) std::exit(findings.code());
    ::_exit(findings.code());
  }
  return ended(child);
}

inline const char* const kFine = "exited with 0";

}  // namespace ringmain::tests
