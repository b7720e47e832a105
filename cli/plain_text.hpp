// What of a text that somebody else wrote may go to a terminal?
#pragma once
#include <string>
#include <string_view>

namespace ringmain::cli {

/// Control characters (also U+007F to U+009F) become \u00NN, bytes that are no UTF-8 \xNN; what
/// JSON has stays the same JSON. Ends of lines and tabs stay where `keeps_lines`.
[[nodiscard]] std::string plain_text(std::string_view text, bool keeps_lines);

}  // namespace ringmain::cli
