// Is this the file that a manifest was written for? Its SHA-256, FIPS 180-4, as `sha256sum` says
// it.
#pragma once
#include <string>
#include <string_view>

namespace ringmain::registry {

[[nodiscard]] std::string sha256_of(std::string_view bytes);
/// "" if it cannot be read.
[[nodiscard]] std::string sha256_of_file(const std::string& path);

}  // namespace ringmain::registry
