#include "tests/harness/nccl/judge.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr int kLeaks = 23;      // LeakSanitizer's exit status
constexpr int kPatiences = 30;  // so many without a call, outside the plugin: the harness hangs
Board* board_of_this_process = nullptr;

/// Where the processor was; 0: not known on this processor.
std::uintptr_t instruction_of(const void* state) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(state)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine.pc);
#else
  (void)machine;
  return 0;
#endif
}

void crashed(int signal, siginfo_t* info, void* state) {
  Crash how;
  // Of an address that cannot be the kernel tells 0, with a code of its own; abort() has none.
  how.has_address =
      (signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 && info->si_code != SI_KERNEL;
  if (how.has_address) how.address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  how.no_code = how.has_address && how.address == instruction_of(state);
  board_of_this_process->crashed(how);
  (void)std::signal(signal, SIG_DFL);
  (void)::raise(signal);
}

/// What the child does before anything of the plugin's is loaded.
void prepare(Board& board) {
  constexpr rlimit kNone{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &kNone);
  // Freed memory is overwritten, so that a use of it shows itself.
  (void)::mallopt(M_PERTURB, 0xA5);
  board_of_this_process = &board;
  if (kSanitized) return;  // its reports are better
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE}) {
    struct sigaction action {};
    action.sa_sigaction = &crashed;
    action.sa_flags = SA_SIGINFO;
    (void)::sigaction(signal, &action, nullptr);
  }
}

[[noreturn]] void play(const Trial& trial, Board& board) {
  prepare(board);
  board.name("main");
  {
    Model model(trial.plugin, trial.version, trial.options.release, board);
    Stage stage(model, board, trial.options);
    trial.scenario->play(stage);
    stage.leave();
  }
  board.finished();
  std::fflush(nullptr);
  std::exit(0);  // not _exit(): destructors of a library that is still mapped are a plugin's, too
}

/// Waits for the child to end; false if it is stuck, which has been killed then.
bool wait_for(pid_t child, const Board& board, double patience_s, int& status) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  int quiet = 0;
  std::uint64_t calls = 0;
  bool stuck = false;
  while (!stuck) {
    pollfd polled{descriptor, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(patience_s * 1000)) != 0) break;
    const std::uint64_t seen = board.calls();
    quiet = seen == calls ? quiet + 1 : 0;
    calls = seen;
    stuck = quiet >= (board.inside().empty() ? kPatiences : 1);
  }
  if (stuck) (void)::kill(child, SIGKILL);
  (void)::waitpid(child, &status, 0);
  (void)::close(descriptor);
  return !stuck;
}

/// The findings of a child that did not end by itself.
void judge_end(const Board& board, int status, Outcome& outcome) {
  const char* const rule = board.rule_at_the_end();
  const std::string place = board.place_of_crash();
  const auto add = [&](const char* name, const std::string& text) {
    outcome.findings.push_back({name, text});
  };
  if (WIFSIGNALED(status)) {
    add(rule != nullptr ? rule : rules::kSurvives,
        std::string(::strsignal(WTERMSIG(status))) + board.address_of_crash() + " in " +
            (place.empty() ? "the library's end or a thread of the plugin's own" : place));
  } else if (board.done() && WEXITSTATUS(status) == kLeaks) {
    add(rules::kMemory, "LeakSanitizer found memory that nobody freed; its report is above");
  } else if (WEXITSTATUS(status) != 0 || !board.done()) {
    add(rule != nullptr ? rule : rules::kSurvives, "the process ended itself with status " +
                                                       std::to_string(WEXITSTATUS(status)) +
                                                       (place.empty() ? "" : " in " + place));
  }
}

enum Tried { kOpened, kFaulty, kNoTable, kNoLibrary };

/// What the child says of one version: that it is not there is no fault, as NCCL takes another.
Tried try_to_open(const std::string& plugin, int version, Board& board) {
  std::string error;
  const bool opened =
      PluginView::open(plugin, version, abi::kNewestVersion, board, error) != nullptr;
  board.finished();
  if (opened) return kOpened;
  void* const library = ::dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr && ::dlsym(library, abi::symbol_of(version)) == nullptr) return kNoTable;
  board.found(rules::kOpens, "%s", error.c_str());
  return library == nullptr ? kNoLibrary : kFaulty;
}

}  // namespace

std::vector<int> versions_of(const std::string& plugin, const std::vector<int>& wanted,
                             std::vector<Finding>& findings) {
  std::vector<int> found;
  std::string asked;
  for (int version = abi::kNewestVersion; version >= abi::kOldestVersion; --version) {
    if (!wanted.empty() && std::ranges::find(wanted, version) == wanted.end()) continue;
    asked += (asked.empty() ? "" : ", ") + std::string(abi::symbol_of(version));
    Board& board = Board::make();
    const pid_t child = ::fork();
    if (child == 0) {
      prepare(board);
      ::_exit(try_to_open(plugin, version, board));
    }
    int status = 0;
    (void)::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kOpened) found.push_back(version);
    Outcome outcome;
    if (!board.done()) judge_end(board, status, outcome);
    for (const Finding& finding : board.findings()) outcome.findings.push_back(finding);
    findings.insert(findings.end(), outcome.findings.begin(), outcome.findings.end());
    if (!board.done()) return {};
    if (WEXITSTATUS(status) == kNoLibrary) return {};
  }
  if (found.empty() && findings.empty()) {
    findings.push_back({rules::kOpens, "it exports no " + asked});
  }
  return found;
}

Outcome judge(const Trial& trial) {
  Outcome outcome;
  Board& board = Board::make();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    outcome.harness_failed = true;
    outcome.said = "a process could not be started";
    return outcome;
  }
  if (child == 0) play(trial, board);
  int status = 0;
  const bool ended = wait_for(child, board, trial.patience_s, status);
  outcome.findings = board.findings();
  outcome.calls = board.calls();
  if (ended) {
    judge_end(board, status, outcome);
  } else if (!board.inside().empty()) {
    outcome.findings.push_back({rules::kReturns, board.inside() + ", did not return"});
  } else {
    outcome.harness_failed = true;
    outcome.said = "no thread is inside the plugin, and none goes on";
  }
  return outcome;
}

}  // namespace ringmain::nccl_conformance
