#include "cli/plain_text.hpp"

#include <cstddef>
#include <cstdio>

#include "adapters/formats/json_text.hpp"

namespace ringmain::cli {
namespace {

/// U+0000 to U+001F and U+007F to U+009F; -1: it is none.
int control(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f ? first : -1;
  const auto second = static_cast<unsigned char>(character[1]);
  return character.size() == 2 && first == 0xc2 && second < 0xa0 ? second : -1;
}

}  // namespace

std::string plain_text(std::string_view text, bool keeps_lines) {
  std::string plain;
  plain.reserve(text.size());
  const auto add_escaped = [&plain](const char* format, unsigned number) {
    char escaped[8];
    (void)std::snprintf(escaped, sizeof escaped, format, number);
    plain += escaped;
  };
  while (!text.empty()) {
    const std::size_t bytes = formats::detail::utf8_length(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    const bool is_kept = keeps_lines && (character == "\n" || character == "\t");
    const int number = bytes == 0 ? -1 : control(character);
    if (bytes == 0) {
      add_escaped("\\x%02x", static_cast<unsigned char>(character[0]));
    } else if (number >= 0 && !is_kept) {
      add_escaped("\\u%04x", static_cast<unsigned>(number));
    } else {
      plain += character;
    }
    text.remove_prefix(character.size());
  }
  return plain;
}

}  // namespace ringmain::cli
