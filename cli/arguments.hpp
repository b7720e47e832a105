// The options and operands that a verb was given, and how it says that they are wrong.
//
// command_line.hpp makes this from the words that were typed.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// The options and operands of one call.
class Arguments {
 public:
  /// The values of each option, in their order: one for each time that the option was given.
  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;

  Arguments(Values values, std::vector<std::string> operands)
      : values_(std::move(values)), operands_(std::move(operands)) {}

  [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
  /// The last value given, so that a later option overrides an earlier one.
  [[nodiscard]] std::optional<std::string> value(std::string_view option) const;
  [[nodiscard]] std::vector<std::string> values(std::string_view option) const;
  [[nodiscard]] const std::vector<std::string>& operands() const noexcept { return operands_; }

 private:
  Values values_;
  std::vector<std::string> operands_;
};

using registry::did_you_mean;
/// Prints "ringmain: …" and where to read more; returns kWrongUsage. `verb` begins with the verbs
/// that it is nested in: "bundle list".
int wrong_usage(std::string_view verb, std::string_view sentence);
/// Prints "ringmain: …"; returns kFailed.
int failed(std::string_view sentence);

/// A positive number of bytes: "4096", "256M", "1.5GiB". nullopt for anything else.
[[nodiscard]] std::optional<unsigned long long> parse_bytes(std::string_view text);
/// All of `text` as a number in [min, max].
[[nodiscard]] std::optional<double> parse_number(std::string_view text, double min, double max);

}  // namespace ringmain::cli
