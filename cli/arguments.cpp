#include "cli/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ringmain::cli {
std::optional<std::string> Arguments::value(std::string_view option) const {
  const auto found = values_.find(option);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
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
