// Source: "Writing your own completions" and complete(1) in fish's manual.
#include "cli/completion_script.hpp"

namespace ringmain::cli {
namespace {

constexpr const char* kHead =
    R"fish(# Completion of ringmain for fish: made by 'ringmain completion fish' from its own verbs and options.

# Are the words so far these verbs, and is the next one a verb below them?
function __ringmain_next
    set -l words (commandline -opc)
    test (count $words) -eq (math 1 + (count $argv)); or return
    test "$words[2..-1]" = "$argv"
end

# Are these verbs the first words, with whatever behind them?
function __ringmain_in
    set -l words (commandline -opc)
    set -l last (math 1 + (count $argv))
    test (count $words) -ge $last; or return
    test "$words[2..$last]" = "$argv"
end

# Where the command of 'ringmain run' stands, if it is there already: after the options, of which $argv take a value.
function __ringmain_command_at
    set -l words (commandline -opc)
    set -l i 3
    while test $i -le (count $words)
        if test "$words[$i]" = --
            set i (math $i + 1)
            test $i -le (count $words); and echo $i; and return
            return 1
        else if contains -- "$words[$i]" $argv
            set i (math $i + 2)
        else if string match -q -- '-*' "$words[$i]"
            set i (math $i + 1)
        else
            echo $i
            return
        end
    end
    return 1
end

# What may stand where the command of 'ringmain run' does, or in it.
function __ringmain_command
    set -l words (commandline -opc)
    set -l at (__ringmain_command_at $argv)
    if test -z "$at"
        string match -q -- '-*' (commandline -ct); and return
        set at (math (count $words) + 1)
    end
    set -l command (string escape -- $words[$at..-1]) (commandline -ct)
    complete --do-complete="$command"
end

function __ringmain_providers
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    if string match -q '*:*' -- $typed
        __fish_complete_path (string replace -r '^[^:]*:' '' -- $typed) | string replace -r '^' (string replace -r ':.*' ':' -- $typed)
        return
    end
    command $words[1] providers 2>/dev/null | string match -rg "^$argv[1] +([A-Za-z0-9_]+)"
end

complete -c ringmain -f
)fish";

/// "-n … -a …", "" where there is nothing to suggest but the value is one.
std::string values(const Suggested& what) {
  if (!what.words.empty()) return " -a " + quoted(joined(what.words, " "));
  if (what.kind == Suggested::folders) return " -a '(__fish_complete_directories)'";
  if (what.kind == Suggested::source) return " -a '(__ringmain_providers source)'";
  if (what.kind == Suggested::sink) return " -a '(__ringmain_providers sink)'";
  return "";
}

std::string line(const std::string& condition, const std::string& what, std::string_view help) {
  std::string made = "complete -c ringmain -n " + quoted(condition) + what;
  if (!help.empty()) made += " -d " + quoted(help);
  return made + "\n";
}

std::string option_line(const std::string& condition, const Option& option) {
  const bool longer = option.name.starts_with("--");
  std::string made = std::string(longer ? " -l " : " -s ");
  made += option.name.substr(longer ? 2 : 1);
  if (!option.value.empty()) {
    const Suggested what = suggested(option);
    made += what.kind == Suggested::files ? " -r -F" : " -x" + values(what);
  }
  return line(condition, made, brief(option.help));
}

std::string operand_lines(const Verb& program, const Verb& verb, const std::string& condition) {
  const Suggested what = suggested(program, verb);
  std::string made;
  if (!what.words.empty()) made += line(condition, values(what), "");
  if (what.kind == Suggested::files) made += line(condition, " -F", "");
  if (what.kind == Suggested::folders) made += line(condition, values({{}, what.kind}), "");
  return made;
}

std::string lines_of(const Verb& program, const VerbPath& path) {
  const Verb& verb = *path.back();
  const std::string words = joined(path, " ");
  std::string within = words.empty() ? "__ringmain_next" : "__ringmain_in " + words;
  std::string made;
  for (const Choice& choice : choices_of(verb)) {
    made += line("__ringmain_next" + (words.empty() ? "" : " " + words),
                 " -a " + std::string(choice.name), choice.summary);
  }
  if (verb.runs_command) {
    std::string taking;
    for (const Option& option : verb.options) {
      if (!option.value.empty()) taking += " " + std::string(option.name);
    }
    made += line(within, " -a '(__ringmain_command" + taking + ")'", "");
    within += "; and not __ringmain_command_at" + taking + " >/dev/null";
  }
  if (verb.verbs.empty() && !verb.runs_command) made += operand_lines(program, verb, within);
  // "--help" and "-h" are one.
  for (const Option& option : verb.options) made += option_line(within, option);
  return made + line(within, " -s h -l help", "say what the words mean");
}

/// What help is asked about: "ringmain help fr …" and "ringmain fr help …".
std::string help_lines(const VerbPath& path) {
  std::vector<std::string_view> names;
  for (const Verb* nested : path.back()->verbs) names.push_back(nested->name);
  if (names.empty()) return "";
  const std::string suggested = " -a " + quoted(joined(names, " "));
  const std::string words = joined(path, " ");
  if (words.empty()) return line("__ringmain_next help", suggested, "");
  return line("__ringmain_next help " + words, suggested, "") +
         line("__ringmain_next " + words + " help", suggested, "");
}

}  // namespace

std::string fish_completion(const Verb& program) {
  std::string made = kHead;
  for (const VerbPath& path : verbs_below({&program})) made += lines_of(program, path);
  for (const VerbPath& path : verbs_below({&program})) made += help_lines(path);
  return made;
}

}  // namespace ringmain::cli
