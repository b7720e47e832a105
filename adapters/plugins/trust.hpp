// May root load this? Only if no other user can change the file or a folder above it.
#pragma once
#include <string>

namespace ringmain::registry {

/// "", or why root should not load what is at that path: other users own a part of the path, or can
/// write there. The owner of ringmain's own library is trusted with plugins as well. Always "" for
/// users other than root, who harm only themselves.
[[nodiscard]] std::string trust_fault(const std::string& path);

}  // namespace ringmain::registry
