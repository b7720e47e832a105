// How does a source's library get its channel in a program that does not know of it?
#pragma once
#include <optional>
#include <tuple>

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

/// A channel that lives as long as this does, also after its bus.
template <class E>
struct ChannelHeld {
  Channel<E>* channel = nullptr;
  engine::Ref<engine::ChannelCore> core;
};

/// As channel_of(); an Error where it refuses.
template <Described E>
[[nodiscard]] std::optional<Error> hold_channel(Bus& bus, ChannelHeld<E>& held) {
  auto core = detail::Erased::channel(bus, schema<E>());
  if (!core) return core.error();
  held.core = core.value();
  held.channel = &bus.channel<E>();
  return std::nullopt;
}

/// All of a tuple of ChannelHeld; the first that is refused ends it.
template <class Held>
[[nodiscard]] std::optional<Error> hold_channels(Bus& bus, Held& channels) {
  std::optional<Error> conflict;
  std::apply([&](auto&... held) { (void)((conflict = hold_channel(bus, held), !conflict) && ...); },
             channels);
  return conflict;
}

}  // namespace ringmain::run
