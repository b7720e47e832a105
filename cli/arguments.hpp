// What was typed, and what was meant? Verbs, options and operands of the command line.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/registry.hpp"

namespace ringmain::cli {

/// The exit statuses of every verb.
enum Exit : int {
  kDone = 0,
  kFailed = 1,  // what was asked for could not be done, or events were lost
  kWrongUsage = 2,
  kSignalled = 128  // plus the signal's number, as shells say it: 130 after Ctrl-C
};

struct Option {
  std::string_view name;   // "--speed"
  std::string_view value;  // "FACTOR"; "" for a switch
  std::string_view help;   // lines after the first are indented by the printer
};

class Arguments;

struct Verb {
  std::string_view name;
  std::string_view operands;  // "FILE…"; "" for none
  std::string_view summary;   // one line, for the list of verbs
  std::string_view details;   // what --help says below the usage
  std::span<const Option> options;
  int (*run)(const Arguments&);
  bool runs_command = false;  // the first operand ends the options: the rest is the command's
};

/// The options and operands of one call.
class Arguments {
 public:
  [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
  /// The last value given, so that a later option overrides an earlier one.
  [[nodiscard]] std::optional<std::string> value(std::string_view option) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view option) const;
  [[nodiscard]] const std::vector<std::string>& operands() const noexcept { return operands_; }
  [[nodiscard]] bool help() const noexcept { return help_; }

  /// Takes --help, "--name value" and "--name=value"; "--" ends the options, "-" is an operand. On
  /// a fault `error` becomes one sentence.
  static std::optional<Arguments> parse(const Verb& verb, std::span<char* const> words,
                                        std::string& error);

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> operands_;
  bool help_ = false;
};

using registry::did_you_mean;
void print_help(const Verb& verb);
/// Prints "ringmain: …" and where to read more; returns kWrongUsage.
int wrong_usage(std::string_view verb, std::string_view sentence);
/// Prints "ringmain: …"; returns kFailed.
int failed(std::string_view sentence);

/// A positive number of bytes: "4096", "256M", "1.5GiB". nullopt for anything else.
[[nodiscard]] std::optional<unsigned long long> parse_bytes(std::string_view text);
/// All of `text` as a number in [min, max].
[[nodiscard]] std::optional<double> parse_number(std::string_view text, double min, double max);

}  // namespace ringmain::cli
