#include "adapters/did_you_mean.hpp"

#include <algorithm>
#include <cstddef>

namespace ringmain::registry {
namespace {

/// How many letters must be changed, added, left out or swapped with a neighbour?
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({change, d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > 64) return "";
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    std::size_t far = distance(word, candidate);
    if (word.size() >= 3 && candidate.substr(0, word.size()) == word) far = 1;
    if (far < least && far < candidate.size()) {  // a letter of it was right
      least = far;
      best = candidate;
    }
  }
  return best.empty() ? "" : "; did you mean '" + std::string(best) + "'?";
}

}  // namespace ringmain::registry
