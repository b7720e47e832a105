// How does a source's library get its channel in a program that does not know of it?
#pragma once
#include "bus/core/erased.hpp"

namespace ringmain::run {

/// As Bus::channel<E>(), but an Error where the program has another event of that name, for which
/// that one ends the process. Throws std::bad_alloc. Threads: any.
template <Described E>
[[nodiscard]] Result<Channel<E>*> channel_of(Bus& bus) {
  if (const auto found = detail::Erased::channel(bus, schema<E>()); !found) return found.error();
  return &bus.channel<E>();
}

}  // namespace ringmain::run
