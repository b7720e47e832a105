// How is a value of a line read so that nothing in it goes unchecked? simdjson does not look at
// what it is not asked for.
#pragma once
#include <cstdint>
#include <optional>
#include <simdjson.h>
#include <string_view>

namespace ringmain::cli {

namespace json = simdjson::ondemand;
using simdjson::error_code;

/// Reads all of a value, because simdjson does not check what it is not asked for.
[[nodiscard]] error_code check_json(json::value value, unsigned depth);
/// A whole number of 64 bits; leaves `into` alone for any other value, which has been checked then.
[[nodiscard]] error_code read_whole(json::value value, std::optional<std::int64_t>& into);
/// The same for a text, which is valid until the next line.
[[nodiscard]] error_code read_text(json::value value, std::optional<std::string_view>& into);

}  // namespace ringmain::cli
