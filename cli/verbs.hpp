// Which verbs are there?
//
// A verb is a file of its own that declares name, options and texts in one place (providers.cpp is
// a short one), a function here, and a line in main.cpp's list. --help, refusals, *did you mean*,
// the manual's page and the shells' completion follow from the declaration. Nested verbs, as in
// `ringmain bundle list`: the outer verb has no run() and names the inner ones:
//
//   static const Verb* const kNested[] = {&bundle_list_verb(), &bundle_check_verb()};
//   static const Verb kVerb{.name = "bundle", .operands = "VERB [ARGUMENT…]", .summary = "…",
//                           .details = "…", .verbs = kNested};
#pragma once
#include <span>
#include <string_view>

#include "cli/arguments.hpp"

namespace ringmain::cli {

struct Option {
  std::string_view name;       // "--speed", "-o"
  std::string_view value;      // "FACTOR"; "" for a switch
  std::string_view help;       // may have several lines
  std::string_view choices{};  // "json pickle": the words that a value can be, for completion
};

struct Verb {
  std::string_view name;
  std::string_view operands;  // "FILE…"; "" for none
  std::string_view summary;   // one line, for the list of verbs
  std::string_view details;   // what --help says below the usage
  std::span<const Option> options{};
  int (*run)(const Arguments&) = nullptr;
  bool runs_command = false;  // the first operand ends the options: the rest is the command's
  std::span<const Verb* const> verbs{};  // nested ones, in place of options and run()
};

[[nodiscard]] const Verb& run_verb();
[[nodiscard]] const Verb& replay_verb();
[[nodiscard]] const Verb& sort_verb();
[[nodiscard]] const Verb& summary_verb();
[[nodiscard]] const Verb& post_mortem_verb();
[[nodiscard]] const Verb& door_verb();
[[nodiscard]] const Verb& fr_verb();
[[nodiscard]] const Verb& fr_analyze_verb();
[[nodiscard]] const Verb& fr_convert_verb();
[[nodiscard]] const Verb& fr_merge_verb();
[[nodiscard]] const Verb& providers_verb();
[[nodiscard]] const Verb& doctor_verb();
[[nodiscard]] const Verb& completion_verb();
[[nodiscard]] const Verb& man_verb();
/// What holds all of them.
[[nodiscard]] const Verb& program();

/// What became of SIGPIPE before the program chose to ignore it.
using SignalHandler = void(int);
[[nodiscard]] SignalHandler*& inherited_sigpipe() noexcept;
/// Ends the program as SIGPIPE would have, without a word: whoever read its output has seen enough
/// (`… | head`). Returns if the program was started with SIGPIPE ignored: that asks for the error.
void end_as_nobody_reads() noexcept;

}  // namespace ringmain::cli
