#include "adapters/plugins/probe.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "adapters/library_folder.hpp"

// glibc's other name for clone(), which ThreadSanitizer does not intercept as a fork.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...) noexcept;

namespace ringmain::registry {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
using Stack = std::array<std::byte, kStackBytes>;

struct Trial {
  const char* program;
  const char* plugin;
  char* const* environment;
  int says[2];  // a pipe behind the probe's standard output
  int nowhere;
  Stack* stack;
  std::string said;
  bool started;
  int status;
};

/// This process's environment, without what would make the probe take part in a `ringmain run`.
std::vector<char*> environment_of_probe() {
  std::vector<char*> kept;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    if (std::strncmp(*one, "RINGMAIN_RUN", 12) != 0) kept.push_back(*one);
  }
  kept.push_back(nullptr);
  return kept;
}

/// Becomes the probe, in a child that shares this process's memory until execve().
int become_probe(void* given) {
  const auto& trial = *static_cast<const Trial*>(given);
  (void)::dup2(trial.says[1], STDOUT_FILENO);
  (void)::dup2(trial.nowhere, STDERR_FILENO);
  const char* const words[] = {trial.program, trial.plugin, nullptr};
  ::execve(trial.program, const_cast<char* const*>(words), trial.environment);
  ::_exit(127);
}

std::string read_all(int from) {
  std::string said;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd watched{from, POLLIN, 0};
    if (left.count() <= 0) return said;
    const int ready = ::poll(&watched, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return said;
    char some[512];
    const ssize_t n = ::read(from, some, sizeof some);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return said;
    said.append(some, static_cast<std::size_t>(n));
    if (said.size() > 4096) said.erase(0, said.size() - 2048);  // its last line is the verdict
  }
}

/// The probe's parent, which shares this process's memory while the calling thread sleeps. So the
/// probe is no child of the program, whose handlers and waits see no child come or go.
int watch_probe(void* given) {
  auto& trial = *static_cast<Trial*>(given);
  // Descriptors are not shared: those made here end with this child.
  if (::pipe2(trial.says, O_CLOEXEC) != 0) return 0;
  trial.nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t probe = ::__clone(become_probe, trial.stack->data() + kStackBytes - 64,
                                CLONE_VM | CLONE_VFORK | SIGCHLD, &trial);
  ::close(trial.says[1]);
  if (probe <= 0) return 0;
  trial.started = true;
  trial.said = read_all(trial.says[0]);
  // Its output or its time is over. It may be about to end by itself, so wait a little before it is
  // killed.
  for (int waited_ms = 0; ::waitpid(probe, &trial.status, WNOHANG) == 0; ++waited_ms) {
    if (waited_ms == 100) ::kill(probe, SIGKILL);
    (void)::poll(nullptr, 0, 1);
  }
  return 0;
}

std::string verdict(int status, std::string said) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return "";  // the probe could not start
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && !said.empty()) {
    return said.substr(said.rfind('\n') + 1);  // after what its initialisers may have said
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGKILL || signal == SIGALRM) {
    return "its initialisers do not end within ten seconds";
  }
  if (signal != 0) {
    return std::string("a trial in a process of its own ended with '") + ::strsignal(signal) +
           "': it is damaged, or its initialisers throw";
  }
  return "a trial in a process of its own ended with status " +
         std::to_string(WEXITSTATUS(status)) + ": its initialisers end the program";
}

}  // namespace

std::string probe_plugin(const std::string& path) {
  const std::string program = library_folder() + "/ringmain/ringmain-probe";
  if (::access(program.c_str(), X_OK) != 0) return "";
  const auto stacks = std::make_unique<std::array<Stack, 2>>();
  const std::vector<char*> environment = environment_of_probe();
  Trial trial{program.c_str(),
              path.c_str(),
              environment.data(),
              {-1, -1},
              -1,
              &stacks->front(),
              "",
              false,
              0};
  // Handlers of the program must not run in a child that shares its memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t watcher = ::__clone(watch_probe, stacks->back().data() + kStackBytes - 64,
                                  CLONE_VM | CLONE_VFORK, &trial);
  if (watcher > 0) (void)::waitpid(watcher, nullptr, static_cast<int>(__WCLONE));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return trial.started ? verdict(trial.status, std::move(trial.said)) : "";
}

}  // namespace ringmain::registry
