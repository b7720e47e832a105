// How far apart must two words be so that writing one never slows a reader of the other?
//
// Two 64-byte lines: x86 fetches lines in pairs, and several Arm server cores use 128-byte lines.
#pragma once
#include <cstddef>

namespace ringmain::engine {
enum : std::size_t { kLineBytes = 128 };
}  // namespace ringmain::engine
