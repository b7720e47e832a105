// Source: zshcompsys(1), `_arguments` and `_describe`.
#include "cli/completion_script.hpp"

namespace ringmain::cli {
namespace {

constexpr const char* kHead = R"zsh(#compdef ringmain
# Completion of ringmain for zsh: made by 'ringmain completion zsh' from its own verbs and options.

# Names of sources or sinks, and after json_lines: and the like files.
_ringmain_providers() {
  local -a found expl
  local line
  for line in ${(f)"$($ringmain_program providers 2>/dev/null)"}; do
    [[ ${line%% *} == $1 ]] && found+=(${${=line}[2]%%[:\[]*})
  done
  if compset -P '*:'; then
    _files
  else
    _wanted providers expl $1 compadd -a found
  fi
}

)zsh";

constexpr const char* kTail = R"zsh(
_ringmain() {
  local ringmain_program=$words[1] curcontext=$curcontext state line
  typeset -A opt_args
  _ringmain_verb
}

# Read by eval it asks to be called; found in $fpath it is the function that is called.
if [[ $funcstack[1] == _ringmain ]]; then
  _ringmain "$@"
else
  compdef _ringmain ringmain
fi
)zsh";

/// What _arguments does with a word: "_files", "(json pickle)".
std::string action(const Suggested& what) {
  constexpr const char* kActions[] = {"", "_files", "_files -/", " _ringmain_providers source",
                                      " _ringmain_providers sink"};
  if (what.words.empty()) return kActions[what.kind];
  const std::string words = "(" + joined(what.words, " ") + ")";
  if (what.kind == Suggested::nothing) return words;
  return std::string("_alternative \"words:word:") + words + "\" \"files:file:_files\"";
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string made;
  for (const char letter : text) {
    if (special.find(letter) != special.npos) made += '\\';
    made += letter;
  }
  return made;
}

std::string option_word(const Option& option) {
  const bool repeated = option.help.find("more than once") != option.help.npos;
  std::string made = repeated ? "*" : "";
  made += option.name;
  if (!option.value.empty() && option.name.starts_with("--")) made += "=";
  made += "[" + escaped(brief(option.help), "[]\\") + "]";
  if (!option.value.empty()) {
    made += ":" + std::string(option.value) + ":" + action(suggested(option));
  }
  return quoted(made);
}

/// What help is asked about: a verb, and one that is nested in it.
std::string help_of(const Verb& verb, const VerbPath& path) {
  std::string made =
      "        help)\n          if ((CURRENT == 2)); then\n            _describe -t verbs verb "
      "verbs\n"
      "            return\n          fi\n          shift words\n          ((CURRENT--))\n"
      "          case $words[1] in\n";
  for (const Verb* nested : verb.verbs) {
    if (nested->verbs.empty()) continue;
    VerbPath below = path;
    below.push_back(nested);
    made += "            " + std::string(nested->name) + ") _ringmain_verb_" + joined(below, "_") +
            " ;;\n";
  }
  return made + "          esac ;;\n";
}

std::string function_of(const Verb& program, const VerbPath& path) {
  const Verb& verb = *path.back();
  const std::string name = joined(path, "_");
  std::string made = "_ringmain_verb" + (name.empty() ? "" : "_" + name) + "() {\n";
  if (!verb.verbs.empty()) {
    made += "  local -a verbs=(\n";
    for (const Choice& choice : choices_of(verb)) {
      made +=
          "    " + quoted(escaped(choice.name, ":") + ":" + escaped(choice.summary, "\\")) + "\n";
    }
    made += "  )\n";
  }
  made += std::string("  _arguments ") + (verb.verbs.empty() ? "-S" : "-C");
  for (const Option& option : options_of(verb)) made += " \\\n    " + option_word(option);
  if (!verb.verbs.empty()) {
    made +=
        " \\\n    '1:verb:->verb' '*::argument:->rest'\n  case $state in\n    verb) _describe -t "
        "verbs verb verbs ;;\n    rest)\n      case $line[1] in\n";
    for (const Verb* nested : verb.verbs) {
      VerbPath below = path;
      below.push_back(nested);
      made += "        " + std::string(nested->name) + ") _ringmain_verb_" + joined(below, "_") +
              " ;;\n";
    }
    return made + help_of(verb, path) + "      esac ;;\n  esac\n}\n";
  }
  if (verb.runs_command) {
    return made + " \\\n    '(-)1:command:_command_names -e' '*::argument:_normal'\n}\n";
  }
  const std::string operands = action(suggested(program, verb));
  if (!operands.empty()) made += " \\\n    " + quoted("*:operand:" + operands);
  return made + "\n}\n";
}

}  // namespace

std::string zsh_completion(const Verb& program) {
  std::string made = kHead;
  for (const VerbPath& path : verbs_below({&program})) made += function_of(program, path);
  return made + kTail;
}

}  // namespace ringmain::cli
