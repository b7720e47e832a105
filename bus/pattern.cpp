#include "bus/pattern.hpp"

#include <cstddef>

namespace ringmain {
namespace {

enum : std::size_t { kPatternBytesMax = 255 };

/// "its.name" of "its.name@2".
std::string_view without_version(std::string_view name) noexcept {
  const std::size_t at = name.rfind('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == name.size()) return name;
  return name.find_first_not_of("0123456789", at + 1) == std::string_view::npos ? name.substr(0, at)
                                                                                : name;
}

}  // namespace

bool pattern_matches(std::string_view pattern, std::string_view name) noexcept {
  if (pattern.find('@') == std::string_view::npos) name = without_version(name);
  for (;;) {
    const std::string_view want = pattern.substr(0, pattern.find('.'));
    const std::string_view have = name.substr(0, name.find('.'));
    const bool last_want = want.size() == pattern.size();
    const bool last_have = have.size() == name.size();
    if (want == ">" && last_want) return !name.empty();
    if (want != "*" && want != have) return false;
    if (have.empty()) return false;
    if (last_want || last_have) return last_want && last_have;
    pattern.remove_prefix(want.size() + 1);
    name.remove_prefix(have.size() + 1);
  }
}

std::string fault_of_pattern(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return "the pattern '" + std::string(pattern.substr(0, 32)) +
           "…' has more than 255 bytes, which no channel's name has; shorten it";
  }
  const std::string it = "the pattern '" + std::string(pattern) + "'";
  for (std::string_view rest = pattern;;) {
    const std::string_view word = rest.substr(0, rest.find('.'));
    const bool last = word.size() == rest.size();
    if (word.empty()) return it + " has an empty word; put one word between two dots";
    if (word != "*" && word.find('*') != word.npos) {
      return it + " has a * beside other characters; * stands for one whole word between dots, " +
             "as in train.*";
    }
    if (word.find('>') != word.npos && (word != ">" || !last)) {
      return it + " has a > that is not its last word; > stands for all words that follow, as in " +
             "train.>";
    }
    if (last) return "";
    rest.remove_prefix(word.size() + 1);
  }
}

}  // namespace ringmain
