// Is there room for one more event on a lane, and what happens where there is none?
#pragma once
#include <cstdint>

#include "lane.hpp"
#include "pushed.hpp"

namespace ringmain::engine {

/// begin() where there is room for one more, by the lane's policy, and a slot. Otherwise why not,
/// and the lane is not busy. Threads: the lane's publisher. Progress: wait-free but for
/// Overflow::block, and where a lane asks for memory.
[[nodiscard]] Pushed begin_with_room(Lane& lane, std::uint64_t& word) noexcept;

}  // namespace ringmain::engine
