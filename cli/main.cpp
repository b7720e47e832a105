// What does `ringmain …` do? Finds the verb and runs it.
#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

const Verb* find_verb(std::string_view name) {
  for (const Verb* verb : verbs()) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

void print_usage(std::FILE* to) {
  std::fputs(
      "usage: ringmain VERB [ARGUMENT…]\n\n"
      "The event plane of a GPU training process: sources publish to typed channels, any number "
      "of\n"
      "subscribers come and go while training runs.\n\nverbs:\n",
      to);
  for (const Verb* verb : verbs()) {
    std::fprintf(to, "  %-10s %s\n", std::string(verb->name).c_str(),
                 std::string(verb->summary).c_str());
  }
  std::fputs(
      "  help       say more about a verb: ringmain help VERB\n\n"
      "options:\n"
      "  --version  print the version\n"
      "  --help     this text\n",
      to);
}

int unknown(std::string_view word) {
  std::vector<std::string_view> names{"help", "--version", "--help"};
  for (const Verb* verb : verbs()) names.push_back(verb->name);
  const std::string what = word.starts_with('-') ? "there is no option '" : "there is no verb '";
  return wrong_usage("", what + std::string(word) + "'" + did_you_mean(word, names));
}

int help(std::span<char* const> words) {
  if (words.empty()) {
    print_usage(stdout);
    return kDone;
  }
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr) return unknown(words[0]);
  print_help(*verb);
  return kDone;
}

int run(std::span<char* const> words) {
  if (words.empty()) {
    print_usage(stderr);
    return kWrongUsage;
  }
  const std::string_view first = words[0];
  if (first == "--version" || first == "-V") {
    std::puts("ringmain " RINGMAIN_VERSION);
    return kDone;
  }
  if (first == "--help" || first == "-h" || first == "help") return help(words.subspan(1));
  const Verb* verb = find_verb(first);
  if (verb == nullptr) return unknown(first);
  std::string error;
  const auto arguments = Arguments::parse(*verb, words.subspan(1), error);
  if (arguments && arguments->help()) {
    print_help(*verb);
    return kDone;
  }
  return arguments ? verb->run(*arguments) : wrong_usage(verb->name, error);
}

}  // namespace

std::span<const Verb* const> verbs() {
  static const Verb* const kAll[] = {&run_verb(), &replay_verb(), &sort_verb(), &providers_verb(),
                                     &doctor_verb()};
  return kAll;
}

SignalHandler*& inherited_sigpipe() noexcept {
  static SignalHandler* inherited = SIG_DFL;
  return inherited;
}

}  // namespace ringmain::cli

int main(int count, char** words) {
  // A closed pipe is an error to report, not a death; `run` gives back what was there.
  ringmain::cli::inherited_sigpipe() = std::signal(SIGPIPE, SIG_IGN);
  int status = ringmain::cli::kFailed;
  try {
    status = ringmain::cli::run({words + 1, words + (count > 0 ? count : 1)});
  } catch (const std::exception& thrown) {
    status = ringmain::cli::failed(std::string("stopped: ") + thrown.what());
  }
  const bool unwritten = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (unwritten && status == ringmain::cli::kDone) {
    status = ringmain::cli::failed("standard output cannot be written to");
  }
  return status;
}
