// How does a text of a file that anybody may have written come into a picture?
#pragma once
#include <string>
#include <string_view>

namespace ringmain::flight {

/// Without what XML has a meaning for, and without what it does not allow.
[[nodiscard]] std::string svg_escaped(std::string_view text);
/// `more`: attributes.
[[nodiscard]] std::string svg_text(int x, int y, std::string_view text, const char* more = "");

}  // namespace ringmain::flight
