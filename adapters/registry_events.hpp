// What does the registry publish about itself? Registry::tell() chooses the bus.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

#include "provider.hpp"

namespace ringmain::registry {

/// A provider was registered. It is neither loaded nor opened yet.
struct Registered {
  Name provider;
  Name from;  // the plugin's library, or ""
  ProviderKind kind = ProviderKind::sink;
  bool replaced = false;  // it took the place of one of the same name
};
constexpr auto describe(EventOf<Registered>) {
  return event("registry.registered", field<&Registered::provider>("provider"),
               field<&Registered::from>("from"),
               field<&Registered::kind>("kind", "source,sink,bridge"),
               field<&Registered::replaced>("replaced"));
}

/// Its factory was loaded: at the first use, or again after an unload.
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

/// Its loader failed; the next use tries again.
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

/// It was removed. Objects that were opened live on.
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
