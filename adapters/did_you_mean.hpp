// Which of the known names was probably meant?
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ringmain::registry {

/// "; did you mean '…'?" for the candidate that is closest to `word`, or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string_view>& candidates);

}  // namespace ringmain::registry
