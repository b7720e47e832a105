// May root load this? Only what nobody else can change: neither the file, nor a folder above it.
#pragma once
#include <string>

namespace ringmain::registry {

/// "" or why root should not load what is at that path: a part of the path that others own, or can
/// write. Those who own ringmain's own library are trusted with plugins as well. Always "" for
/// other users, who harm themselves only.
[[nodiscard]] std::string trust_fault(const std::string& path);

}  // namespace ringmain::registry
