// What does a shell suggest after "ringmain"? Its completion script, from the declarations of
// verbs.
#pragma once
#include <string>
#include <vector>

#include "cli/man_page.hpp"

namespace ringmain::cli {

[[nodiscard]] std::string bash_completion(const Verb& program);
[[nodiscard]] std::string zsh_completion(const Verb& program);
[[nodiscard]] std::string fish_completion(const Verb& program);

/// What stands where a value or an operand does: some words, and something that a shell knows.
struct Suggested {
  enum Kind { nothing, files, folders, source, sink };
  std::vector<std::string_view> words;
  Kind kind = nothing;
};
[[nodiscard]] Suggested suggested(const Option& option);
/// Of "[stats|dump] [PID|SOCKET]…" the words stats and dump, and files for sockets; the verbs of
/// `program` for "VERB".
[[nodiscard]] Suggested suggested(const Verb& program, const Verb& verb);

/// The verbs that a word in the place of `verb`'s can be, "help" the last one; {} of a leaf.
struct Choice {
  std::string_view name;
  std::string_view summary;
};
[[nodiscard]] std::vector<Choice> choices_of(const Verb& verb);
/// Its options, and -h and --help.
[[nodiscard]] std::vector<Option> options_of(const Verb& verb);
/// "fr analyze", with `between` in place of the space; "" for the program.
[[nodiscard]] std::string joined(const VerbPath& path, std::string_view between);
[[nodiscard]] std::string joined(const std::vector<std::string_view>& words,
                                 std::string_view between);
/// The first sentence of a help text, on one line.
[[nodiscard]] std::string brief(std::string_view help);
/// A word of the shell, in quotes.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace ringmain::cli
