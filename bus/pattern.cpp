#include "bus/pattern.hpp"

namespace ringmain {
namespace {
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

}  // namespace ringmain
