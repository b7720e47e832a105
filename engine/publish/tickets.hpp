// Where is the ticket of an event in flight? Beside its lane's queue, because a slot has no room
// for it. What a ticket is for: engine/deliver/merge.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::engine {

/// As many tickets as the lane has room for events, rounded up to a power of two.
struct Tickets {
  std::uint64_t mask;
  std::uint64_t* of;  // by the event's index; 0: published before anybody wanted a ticket
};
/// nullptr: out of memory. `touched`: its pages are in memory before the first event.
[[nodiscard]] Tickets* make_tickets(std::size_t events, bool touched) noexcept;
void free_tickets(Tickets* tickets) noexcept;

}  // namespace ringmain::engine
