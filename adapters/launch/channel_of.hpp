// How does a source's library get its channel in a program that does not know of it?
#pragma once
#include "bus/core/erased.hpp"

namespace ringmain::run {

/// As Bus::channel<E>(), but an Error where the program has made a channel of that name for another
/// event, for which that one ends the process. A program that makes such a channel after this call
/// is ended by its own Bus::channel<E>(). Throws std::bad_alloc. Threads: any.
template <Described E>
[[nodiscard]] Result<Channel<E>*> channel_of(Bus& bus) {
  if (const auto found = detail::Erased::channel(bus, schema<E>()); !found) return found.error();
  return &bus.channel<E>();
}

}  // namespace ringmain::run
