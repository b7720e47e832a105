#include "engine/publish/tickets.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace ringmain::engine {

Tickets* make_tickets(std::size_t events, bool touched) noexcept {
  const std::size_t n = std::bit_ceil(events);
  // calloc: large blocks are pages that take no memory until they are used.
  auto* of = static_cast<std::uint64_t*>(std::calloc(n, sizeof(std::uint64_t)));
  auto* made = of == nullptr ? nullptr : new (std::nothrow) Tickets{n - 1, of};
  if (made == nullptr) std::free(of);  // NOLINT: the pair of calloc
  if (made != nullptr && touched) std::fill_n(static_cast<volatile std::uint64_t*>(of), n, 0);
  return made;
}

void free_tickets(Tickets* tickets) noexcept {
  if (tickets == nullptr) return;
  std::free(tickets->of);  // NOLINT: the pair of calloc
  delete tickets;
}

}  // namespace ringmain::engine
