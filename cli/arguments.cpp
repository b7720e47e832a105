#include "cli/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ringmain::cli {
namespace {

const Option* find_option(const Verb& verb, std::string_view name) {
  const auto found = std::find_if(verb.options.begin(), verb.options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == verb.options.end() ? nullptr : &*found;
}

std::string quoted(std::string_view word) {
  return "'" + std::string(word) + "'";
}

}  // namespace

std::optional<std::string> Arguments::value(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<Arguments> Arguments::parse(const Verb& verb, std::span<char* const> words,
                                          std::string& error) {
  Arguments made;
  bool options_over = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (options_over || word == "-" || !word.starts_with('-')) {
      made.operands_.emplace_back(word);
      options_over = options_over || verb.runs_command;
      continue;
    }
    if (word == "--help" || word == "-h") {
      made.help_ = true;
      return made;
    }
    if (word == "--") {
      options_over = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Option* option = find_option(verb, name);
    if (option == nullptr) {
      std::vector<std::string_view> names{"--help"};
      for (const Option& known : verb.options) names.push_back(known.name);
      error = "there is no option " + quoted(name) + did_you_mean(name, names);
      return std::nullopt;
    }
    std::string value;
    if (equals != word.npos) value = word.substr(equals + 1);
    if (option->value.empty() && equals != word.npos) {
      error = std::string(name) + " takes no value";
      return std::nullopt;
    }
    if (!option->value.empty() && equals == word.npos) {
      if (i + 1 == words.size()) {
        error = std::string(name) + " wants a value: " + std::string(name) + " " +
                std::string(option->value);
        return std::nullopt;
      }
      value = words[++i];
    }
    made.values_[std::string(name)].push_back(std::move(value));
  }
  if (verb.operands.empty() && !made.operands_.empty()) {
    error = std::string(verb.name) + " takes no operand, and was given " +
            quoted(made.operands_.front());
    return std::nullopt;
  }
  return made;
}

void print_help(const Verb& verb) {
  std::printf("usage: ringmain %s [OPTION…]%s%s\n\n%s\n", std::string(verb.name).c_str(),
              verb.operands.empty() ? "" : " ", std::string(verb.operands).c_str(),
              std::string(verb.details).c_str());
  std::printf("\noptions:\n");
  const auto line = [](const Option& option) {
    std::string left = std::string(option.name) + " " + std::string(option.value);
    left.resize(std::max<std::size_t>(left.size(), 24), ' ');
    std::string help(option.help);
    for (std::size_t at = 0; (at = help.find('\n', at)) != help.npos; at += 28) {
      help.replace(at, 1, "\n" + std::string(27, ' '));
    }
    std::printf("  %s %s\n", left.c_str(), help.c_str());
  };
  for (const Option& option : verb.options) line(option);
  line({"--help", "", "this text"});
}

int wrong_usage(std::string_view verb, std::string_view sentence) {
  const std::string after = verb.empty() ? "" : std::string(verb) + " ";
  const bool asks = sentence.ends_with('?');
  std::fprintf(stderr, "ringmain: %s%s 'ringmain %s--help' says more.\n",
               std::string(sentence).c_str(), asks ? "" : ";", after.c_str());
  return kWrongUsage;
}

int failed(std::string_view sentence) {
  std::fprintf(stderr, "ringmain: %s\n", std::string(sentence).c_str());
  return kFailed;
}

std::optional<double> parse_number(std::string_view text, double min, double max) {
  const std::string copy(text);
  if (copy.empty() || (copy[0] != '.' && (copy[0] < '0' || copy[0] > '9'))) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number) || number < min || number > max) return std::nullopt;
  return number;
}

std::optional<unsigned long long> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(digits);
  double factor = 1;
  constexpr std::string_view kUnits = "KMGT";
  if (!unit.empty()) {
    const char letter = unit[0] >= 'a' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const std::size_t power = kUnits.find(letter);
    if (power == kUnits.npos) {
      if (unit != "B") return std::nullopt;
    } else {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
      unit.remove_prefix(1);
      if (!unit.empty() && unit != "B" && unit != "iB") return std::nullopt;
    }
  }
  const auto number = parse_number(text.substr(0, digits), 0, 1e15);
  if (!number || *number * factor < 1 || *number * factor > 1e18) return std::nullopt;
  return static_cast<unsigned long long>(*number * factor);
}

}  // namespace ringmain::cli
