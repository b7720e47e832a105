// How does a library of ours come by its channel in a program that knows nothing of it?
#pragma once
#include "bus/erased.hpp"

namespace ringmain::run {

/// As Bus::channel<E>(), which ends the process where the program has another event of that name:
/// here that is an Error. Throws std::bad_alloc. Threads: any.
template <Described E>
[[nodiscard]] Result<Channel<E>*> channel_of(Bus& bus) {
  if (const auto found = detail::Erased::channel(bus, schema<E>()); !found) return found.error();
  return &bus.channel<E>();
}

}  // namespace ringmain::run
