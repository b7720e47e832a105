// Where is the ticket of an event that is in flight? Beside its lane's queue, for a slot has room
// for one time only. What a ticket is for: engine/deliver/merge.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::engine {

/// As many as the lane has room for, rounded up to a power of two.
struct Tickets {
  std::uint64_t mask;
  std::uint64_t* of;  // by the event's index; 0: published before anybody wanted a ticket
};
/// nullptr: out of memory. `touched`: its pages are there before the first event.
[[nodiscard]] Tickets* make_tickets(std::size_t events, bool touched) noexcept;
void free_tickets(Tickets* tickets) noexcept;

}  // namespace ringmain::engine
