// Each verb becomes a CLI::App with its options; CLI11 looks options up, keeps their values and
// prints the help. The only file that includes CLI11: it takes seconds to compile.
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ringmain::cli {
namespace {

/// One sentence on what is wrong with the words.
struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string in_quotes(std::string_view word) {
  return "'" + std::string(word) + "'";
}

/// Usage above description, and an option's value by its name alone.
class HelpLayout final : public CLI::Formatter {
 public:
  explicit HelpLayout(std::string usage) : usage_(std::move(usage)) { column_width(27); }

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    return usage_ + "\n\n" + app->get_description() + "\n" + make_subcommands(app, mode) +
           make_groups(app, mode);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }

 private:
  std::string usage_;
};

void declare(CLI::App& app, const Option& option) {
  const std::string name(option.name);
  const std::string help(option.help);
  if (option.value.empty()) {
    app.add_flag(name, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    return;
  }
  // Any number of times, one value each, so that CLI11 does not take operands for more values.
  app.add_option(
         name, [](const CLI::results_t&) { return true; }, help)
      ->type_name(std::string(option.value))
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// `path`: the verb after those that it is nested in, "bundle list"; "" for the program.
std::unique_ptr<CLI::App> declared(const Verb& verb, const std::string& path) {
  auto app = std::make_unique<CLI::App>(std::string(verb.details));
  std::string usage = "usage: ringmain" + (path.empty() ? "" : " " + path);
  if (verb.verbs.empty()) usage += " [OPTION…]";
  if (!verb.operands.empty()) usage += " " + std::string(verb.operands);
  app->formatter(std::make_shared<HelpLayout>(std::move(usage)));
  app->option_defaults()->group("options");
  for (const Option& option : verb.options) declare(*app, option);
  app->set_help_flag("-h,--help", "this text")->group("options");
  for (const Verb* nested : verb.verbs) {
    app->add_subcommand(std::string(nested->name), std::string(nested->summary))->group("verbs");
  }
  if (!verb.verbs.empty()) {
    const std::string call = "ringmain " + (path.empty() ? "" : path + " ") + "help VERB";
    app->add_subcommand("help", "say more about a verb: " + call)->group("verbs");
  }
  return app;
}

std::string name_of(const CLI::Option& option) {
  const auto& longer = option.get_lnames();
  return longer.empty() ? "-" + option.get_snames().front() : "--" + longer.front();
}

[[noreturn]] void refuse_option(const CLI::App& app, std::string_view name) {
  std::vector<std::string> known{"--help"};
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr()) known.push_back(name_of(*option));
  }
  throw WrongUsage("there is no option " + in_quotes(name) +
                   did_you_mean(name, {known.begin(), known.end()}));
}

/// The words that were typed, with each option as the words "--name" and "value", which CLI11 reads
/// in one way only.
///
/// Left to itself CLI11 would accept "--json=true", "-oFILE" and "-ab", skip an empty value
/// ("--order="), take "[a,b]" for two operands, and report a missing value before a wrong option
/// in front of it.
struct Spelled {
  std::vector<std::string> options;
  std::vector<std::string> operands;
  bool help = false;
};

Spelled spelled_out(const CLI::App& app, bool runs_command, std::span<char* const> words) {
  Spelled made;
  bool options_over = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (options_over || word == "-" || !word.starts_with('-')) {
      made.operands.emplace_back(word);
      options_over = options_over || runs_command;
      continue;
    }
    if (word == "--help" || word == "-h") {
      made.help = true;
      return made;
    }
    if (word == "--") {
      options_over = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option == nullptr || option == app.get_help_ptr()) refuse_option(app, name);
    const std::string value = option->get_type_name();
    made.options.push_back(name);
    if (value.empty()) {
      if (equals != word.npos) throw WrongUsage(name + " takes no value");
    } else if (equals != word.npos) {
      made.options.emplace_back(word.substr(equals + 1));
    } else if (++i < words.size() && std::string_view(words[i]) != "--") {
      made.options.emplace_back(words[i]);
    } else {
      throw WrongUsage(name + " wants a value: " + name + " " + value);
    }
  }
  return made;
}

Arguments arguments_of(CLI::App& app, Spelled words) {
  app.parse(std::vector<std::string>(words.options.rbegin(), words.options.rend()));  // last first
  Arguments::Values values;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0) values.emplace(name_of(*option), option->results());
  }
  return {std::move(values), std::move(words.operands)};
}

int run_verb(const Verb& verb, const std::string& path, std::span<char* const> words) {
  const auto app = declared(verb, path);
  try {
    Spelled spelled = spelled_out(*app, verb.runs_command, words);
    if (spelled.help) {
      std::fputs(app->help().c_str(), stdout);
      return kDone;
    }
    if (verb.operands.empty() && !spelled.operands.empty()) {
      throw WrongUsage(path + " takes no operand, and was given " +
                       in_quotes(spelled.operands.front()));
    }
    return verb.run(arguments_of(*app, std::move(spelled)));
  } catch (const WrongUsage& why) {
    return wrong_usage(path, why.what());
  } catch (const CLI::ParseError& why) {
    return wrong_usage(path, why.what());
  }
}

const Verb* find_verb(const Verb& among, std::string_view name) {
  for (const Verb* verb : among.verbs) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

int refuse_verb(const Verb& among, const std::string& path, std::string_view word) {
  std::vector<std::string_view> names{"help"};
  for (const Option& option : among.options) names.push_back(option.name);
  names.push_back("--help");
  for (const Verb* verb : among.verbs) names.push_back(verb->name);
  std::vector<std::string> nested;  // "fr merge" for "fr-merge", as its page is called
  for (const Verb* verb : among.verbs) {
    for (const Verb* inner : verb->verbs) {
      nested.push_back(std::string(verb->name) + " " + std::string(inner->name));
    }
  }
  names.insert(names.end(), nested.begin(), nested.end());
  const std::string what = word.starts_with('-') ? "there is no option " : "there is no verb ";
  return wrong_usage(path, what + in_quotes(word) + did_you_mean(word, names));
}

std::string below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + " " + std::string(name);
}

/// "help", or "help VERB", at each level.
int help(const Verb& verb, const std::string& path, std::span<char* const> words) {
  if (words.empty() || verb.verbs.empty()) {
    std::fputs(declared(verb, path)->help().c_str(), stdout);
    return kDone;
  }
  const std::string_view first = words[0];
  if (first == "help" || first == "--help" || first == "-h") return help(verb, path, {});
  const Verb* const nested = find_verb(verb, first);
  if (nested == nullptr) return refuse_verb(verb, path, first);
  return help(*nested, below(path, nested->name), words.subspan(1));
}

int find_and_run(const Verb& verb, const std::string& path, std::span<char* const> words) {
  if (verb.verbs.empty()) return run_verb(verb, path, words);
  if (words.empty()) {
    std::fputs(declared(verb, path)->help().c_str(), stderr);
    return kWrongUsage;
  }
  const std::string_view first = words[0];
  if (first == "--help" || first == "-h" || first == "help") {
    return help(verb, path, words.subspan(1));
  }
  const Verb* const nested = find_verb(verb, first);
  if (nested == nullptr) return refuse_verb(verb, path, first);
  return find_and_run(*nested, below(path, nested->name), words.subspan(1));
}

}  // namespace

int run_command_line(const Verb& program, std::string_view version, std::span<char* const> words) {
  if (!words.empty()) {
    const std::string_view first = words[0];
    if (first == "--version" || first == "-V") {
      std::printf("ringmain %s\n", std::string(version).c_str());
      return kDone;
    }
  }
  return find_and_run(program, "", words);
}

}  // namespace ringmain::cli
