#include "adapters/launch/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "adapters/formats/output_file.hpp"
#include "adapters/launch/part.hpp"

namespace ringmain::run {
namespace {

constexpr const char* kSources = "RINGMAIN_RUN_SOURCES";
constexpr const char* kSinks = "RINGMAIN_RUN_SINKS";
constexpr const char* kFlight = "RINGMAIN_RUN_FLIGHT";
constexpr const char* kMarks = "RINGMAIN_RUN_FLIGHT_MARKS";
constexpr const char* kOptions = "RINGMAIN_RUN_OPTIONS";
constexpr const char* kUnused = "RINGMAIN_RUN_UNUSED";

std::string lines(const std::vector<std::string>& words) {
  std::string made;
  for (const std::string& word : words) made += (made.empty() ? "" : "\n") + word;
  return made;
}

std::vector<std::string> words(const char* lines) {
  std::vector<std::string> made;
  std::string_view left = lines == nullptr ? "" : lines;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    if (end > 0) made.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return made;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Plan::variables() const {
  return {
      {kSources, lines(sources)},
      {kSinks, lines(sinks)},
      {kExceptVariable, lines(except)},
      {kFlight, flight},
      {kMarks, lines(flight_marks)},
      {kOptions, std::string(at_start ? "at_start " : "") + (at_use ? "at_use " : "") +
                     (summary ? "summary" : "")},
      {kUnused, unused.empty() ? ""
                               : std::to_string(process) + " " + unused + "\n" +
                                     (unused_by_launcher.empty() ? unused : unused_by_launcher)},
      {formats::kRunStartedVariable, std::to_string(started_ns)}};
}

std::optional<Plan> Plan::from_environment() {
  const char* started = ::secure_getenv(formats::kRunStartedVariable);
  if (started == nullptr || !takes_part()) return std::nullopt;
  Plan plan;
  plan.started_ns = std::strtoll(started, nullptr, 10);
  plan.sources = words(std::getenv(kSources));
  plan.sinks = words(std::getenv(kSinks));
  plan.except = words(std::getenv(kExceptVariable));
  const char* const recorded = std::getenv(kFlight);
  plan.flight = recorded == nullptr ? "" : recorded;
  plan.flight_marks = words(std::getenv(kMarks));
  const char* options = std::getenv(kOptions);
  const std::string_view said = options == nullptr ? "" : options;
  plan.at_start = said.find("at_start") != said.npos;
  plan.at_use = said.find("at_use") != said.npos;
  plan.summary = said.find("summary") != said.npos;
  if (const char* const unused = std::getenv(kUnused); unused != nullptr && *unused != '\0') {
    char* sentence = nullptr;
    plan.process = static_cast<std::int32_t>(std::strtol(unused, &sentence, 10));
    const auto sentences = words(*sentence == ' ' ? sentence + 1 : "");
    if (!sentences.empty()) {
      plan.unused = sentences.front();
      plan.unused_by_launcher = sentences.back();
    }
  }
  return plan;
}

}  // namespace ringmain::run
