// What does `ringmain …` do? The list of verbs, and what holds for all of them.
#include <csignal>
#include <cstdio>
#include <exception>
#include <poll.h>
#include <string>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {

const Verb& program() {
  static const Verb* const kVerbs[] = {&run_verb(),        &replay_verb(),      &sort_verb(),
                                       &summary_verb(),    &post_mortem_verb(), &door_verb(),
                                       &fr_verb(),         &providers_verb(),   &doctor_verb(),
                                       &completion_verb(), &man_verb()};
  static const Option kOptions[] = {{"--version", "", "print the version"}};
  static const Verb kProgram{
      .name = "",
      .operands = "VERB [ARGUMENT…]",
      .summary = "",
      .details =
          "The event plane of a GPU training process: sources publish to typed channels, any "
          "number of\n"
          "subscribers come and go while training runs.",
      .options = kOptions,
      .verbs = kVerbs};
  return kProgram;
}

SignalHandler*& inherited_sigpipe() noexcept {
  static SignalHandler* inherited = SIG_DFL;
  return inherited;
}

void end_as_nobody_reads() noexcept {
  if (inherited_sigpipe() != SIG_DFL) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

namespace {

/// Of a pipe or socket only; what has failed to be written to it is not kept.
bool standard_output_has_no_reader() noexcept {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace
}  // namespace ringmain::cli

int main(int count, char** words) {
  // A closed pipe must not end what other sinks still write; `run` restores what was set before.
  ringmain::cli::inherited_sigpipe() = std::signal(SIGPIPE, SIG_IGN);
  int status = ringmain::cli::kFailed;
  try {
    status = ringmain::cli::run_command_line(ringmain::cli::program(), RINGMAIN_VERSION,
                                             {words + 1, words + (count > 0 ? count : 1)});
  } catch (const std::exception& thrown) {
    status = ringmain::cli::failed(std::string("stopped: ") + thrown.what());
  }
  const bool unwritten = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  const bool is_done = status == ringmain::cli::kDone;
  if (unwritten && ringmain::cli::standard_output_has_no_reader()) {
    if (is_done) ringmain::cli::end_as_nobody_reads();
  } else if (unwritten) {
    const int failed = ringmain::cli::failed("standard output cannot be written to");
    if (is_done) status = failed;
  }
  return status;
}
