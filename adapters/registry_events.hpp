// What does the registry say on itself? Registry::tell() chooses the bus.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "provider.hpp"

namespace ringmain::registry {

/// A provider is known from now on: not loaded, not opened.
struct Registered {
  Name provider;
  Name from;  // the plugin's library, or ""
  ProviderKind kind = ProviderKind::sink;
  bool replaced = false;  // another one of the same name, on purpose
};
constexpr auto describe(EventOf<Registered>) {
  return event("registry.registered", field<&Registered::provider>("provider"),
               field<&Registered::from>("from"),
               field<&Registered::kind>("kind", "source,sink,bridge"),
               field<&Registered::replaced>("replaced"));
}

/// Its factory is there: at the first use, or again after an unload.
struct Loaded {
  Name provider;
  Name from;
  ProviderKind kind = ProviderKind::sink;
  std::int64_t took_ns = 0;
};
constexpr auto describe(EventOf<Loaded>) {
  return event("registry.loaded", field<&Loaded::provider>("provider"),
               field<&Loaded::from>("from"), field<&Loaded::kind>("kind", "source,sink,bridge"),
               field<&Loaded::took_ns>("took_ns", Unit::ns));
}

/// The loader failed; the next use tries again.
struct LoadFailed {
  Name provider;
  Name from;
  ProviderKind kind = ProviderKind::sink;
  Text<256> reason;
};
constexpr auto describe(EventOf<LoadFailed>) {
  return event("registry.load_failed", field<&LoadFailed::provider>("provider"),
               field<&LoadFailed::from>("from"),
               field<&LoadFailed::kind>("kind", "source,sink,bridge"),
               field<&LoadFailed::reason>("reason"));
}

/// It is not known any more. What was opened of it lives on.
struct Unregistered {
  Name provider;
  Name from;
  ProviderKind kind = ProviderKind::sink;
};
constexpr auto describe(EventOf<Unregistered>) {
  return event("registry.unregistered", field<&Unregistered::provider>("provider"),
               field<&Unregistered::from>("from"),
               field<&Unregistered::kind>("kind", "source,sink,bridge"));
}

}  // namespace ringmain::registry
