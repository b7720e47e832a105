// `ringmain completion`: what a shell needs to complete the words after "ringmain".
#include <cctype>
#include <cstdio>
#include <string>

#include "cli/completion_script.hpp"
#include "cli/verbs.hpp"

namespace ringmain::cli {
namespace {

Suggested::Kind kind_of(std::string_view value) {
  if (value == "FILE" || value == "PREFIX" || value == "SOCKET") return Suggested::files;
  if (value == "FOLDER") return Suggested::folders;
  if (value == "SOURCE") return Suggested::source;
  if (value == "SINK") return Suggested::sink;
  return Suggested::nothing;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  const auto within = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && within(text[end])) ++end;
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

int run(const Arguments& arguments) {
  const std::string shell = arguments.operands().empty() ? "" : arguments.operands().front();
  if (arguments.operands().size() != 1) {
    return wrong_usage("completion", "it wants one shell: bash, zsh or fish");
  }
  std::string script;
  if (shell == "bash") script = bash_completion(program());
  if (shell == "zsh") script = zsh_completion(program());
  if (shell == "fish") script = fish_completion(program());
  if (script.empty()) {
    return wrong_usage("completion", "there is a script for bash, zsh and fish, and none for '" +
                                         shell + "'" +
                                         did_you_mean(shell, {"bash", "zsh", "fish"}));
  }
  std::fputs(script.c_str(), stdout);
  return kDone;
}

}  // namespace

Suggested suggested(const Option& option) {
  return {words_of(option.choices), kind_of(option.value)};
}

Suggested suggested(const Verb& program, const Verb& verb) {
  Suggested made;
  for (const std::string_view word : words_of(verb.operands)) {
    if (std::islower(static_cast<unsigned char>(word.front())) != 0) made.words.push_back(word);
    if (word == "VERB") {
      for (const Choice& choice : choices_of(program)) made.words.push_back(choice.name);
      made.words.pop_back();  // help
    }
    const Suggested::Kind kind = kind_of(word);
    // Where a folder can stand beside a file, a list of files has both.
    if (made.kind != Suggested::files && kind != Suggested::nothing) made.kind = kind;
  }
  return made;
}

std::vector<Choice> choices_of(const Verb& verb) {
  std::vector<Choice> made;
  for (const Verb* nested : verb.verbs) made.push_back({nested->name, nested->summary});
  if (!made.empty()) made.push_back({"help", "say more about a verb"});
  return made;
}

std::vector<Option> options_of(const Verb& verb) {
  std::vector<Option> made(verb.options.begin(), verb.options.end());
  made.push_back({"--help", "", "say what the words mean"});
  made.push_back({"-h", "", "the same as --help"});
  return made;
}

std::string joined(const std::vector<std::string_view>& words, std::string_view between) {
  std::string made;
  for (const std::string_view word : words) {
    if (!made.empty()) made += between;
    made += word;
  }
  return made;
}

std::string joined(const VerbPath& path, std::string_view between) {
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < path.size(); ++i) names.push_back(path[i]->name);
  return joined(names, between);
}

std::string brief(std::string_view help) {
  std::string made;
  for (const char letter : help.substr(0, std::min(help.find(';'), help.find(". ")))) {
    made += letter == '\n' ? ' ' : letter;
  }
  return made;
}

std::string quoted(std::string_view text) {
  std::string made = "'";
  for (const char letter : text) {
    if (letter == '\'') made += "'\\'";
    made += letter;
  }
  return made + "'";
}

const Verb& completion_verb() {
  static const Verb kVerb{
      .name = "completion",
      .operands = "bash|zsh|fish",
      .summary = "print what a shell needs to complete ringmain's words",
      .details =
          "Verbs, options, the names of sources and sinks, files. An installed copy has it where\n"
          "the shells look. Without one, for the shell that reads its start file:\n\n"
          "  bash   eval \"$(ringmain completion bash)\"       in ~/.bashrc\n"
          "  zsh    eval \"$(ringmain completion zsh)\"        in ~/.zshrc, after compinit\n"
          "  fish   ringmain completion fish | source        in ~/.config/fish/config.fish\n\n"
          "exit status: 0; 2 for a wrong call.",
      .run = run};
  return kVerb;
}

}  // namespace ringmain::cli
