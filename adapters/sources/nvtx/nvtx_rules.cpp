// How are steps and phases written?
#include <algorithm>
#include <cstddef>

#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::nvtx {
namespace {

Error refused(std::string_view rule) {
  return {Error::Code::refused,
          "nvtx takes step=MESSAGE[@DOMAIN] and phase=MESSAGE[@DOMAIN], "
          "divided by commas, and not '" +
              std::string(rule.substr(0, 64)) + "'"};
}

}  // namespace

bool fits(std::string_view text, std::string_view pattern) noexcept {
  std::size_t t = 0, p = 0;
  std::size_t star = pattern.npos, taken = 0;  // the last * seen, and where its text ends so far
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<StepRules> StepRules::read(std::string_view written) {
  StepRules made;
  for (std::string_view left = written; !left.empty();) {
    const std::string_view rule = left.substr(0, left.find(','));
    left.remove_prefix(std::min(rule.size() + 1, left.size()));
    const std::size_t equals = std::min(rule.find('='), rule.size());
    const std::string_view what = rule.substr(0, equals);
    std::string_view message = rule.substr(std::min(equals + 1, rule.size()));
    std::string_view domain;
    if (const std::size_t at = message.rfind('@'); at != message.npos) {
      domain = message.substr(at + 1);
      message = message.substr(0, at);
    }
    if ((what != "step" && what != "phase") || message.empty()) return refused(rule);
    made.rules_.push_back({what == "step" ? Part::Of::step : Part::Of::phase, std::string(message),
                           std::string(domain)});
  }
  const bool any_step = std::any_of(made.rules_.begin(), made.rules_.end(),
                                    [](const Rule& r) { return r.of == Part::Of::step; });
  if (!any_step) return refused(written);
  return made;
}

}  // namespace ringmain::nvtx
