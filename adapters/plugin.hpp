// How is a plugin written? Include this, derive a Sink, a Source or a Bridge, and end with
//
//   RINGMAIN_PLUGIN(ringmain::plugin::sink<Tally>("tally"),
//   ringmain::plugin::source<Ticks>("ticks"))
//
// A manifest beside the library (docs/providers.md) says the same, so that it is found without
// being loaded. The one exported symbol, ringmain_plugin_v1, gives the table of
// plugin_table.hpp.
//
// Progress: wait-free; these functions are over when the plugin is compiled.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "../bus/bus.hpp"

#include "plugin_table.hpp"
#include "provider.hpp"

namespace ringmain::plugin {

/// Raised when the meaning of what a plugin and ringmain exchange changes.
constexpr std::uint32_t kAbi = 1;

/// A number that differs where a struct that a plugin's inlined code touches has another shape here
/// than where the plugin was built, or where an event's hash differs. Such a plugin is refused.
constexpr std::uint64_t layout() {
  constexpr FieldSchema kField[] = {{.name = "a", .enumerators = "b", .offset = 8, .bytes = 1}};
  std::uint64_t hash = ringmain::detail::hash_of("c", kField, 16);
  for (const std::size_t bytes : {sizeof(engine::Lane),        sizeof(engine::ChannelCore),
                                  sizeof(engine::ChannelLine), sizeof(engine::Subscriber),
                                  sizeof(engine::Run),         sizeof(Schema),
                                  sizeof(FieldSchema),         sizeof(Stamp),
                                  sizeof(EventView),           sizeof(Error),
                                  sizeof(BusOptions),          sizeof(ChannelOptions),
                                  sizeof(PublisherOptions),    sizeof(SubscribeOptions),
                                  sizeof(registry::Sink),      sizeof(registry::Source),
                                  sizeof(registry::Bridge),    sizeof(std::string),
                                  offsetof(Schema, fields),    offsetof(FieldSchema, offset),
                                  offsetof(Stamp, publisher)}) {
    hash = (hash ^ bytes) * 0x100000001b3ull;
  }
  return hash;
}

namespace detail {

// A plugin says the number, and a program of another build reads it.
static_assert(static_cast<int>(Error::Code::refused) == 0 &&
              static_cast<int>(Error::Code::not_found) == 1 &&
              static_cast<int>(Error::Code::conflict) == 2 &&
              static_cast<int>(Error::Code::no_memory) == 3 &&
              static_cast<int>(Error::Code::system) == 4);

inline void say(ringmain_plugin_error* to, const Error& error) noexcept {
  to->code = static_cast<std::int32_t>(error.code);
  const std::size_t n = std::min(error.message.size(), sizeof to->text - 1);
  std::memcpy(to->text, error.message.data(), n);
  to->text[n] = '\0';
}

template <class Base>
void* give(Result<std::unique_ptr<Base>> made, ringmain_plugin_error* error) noexcept {
  if (made) return made.value().release();
  say(error, made.error());
  return nullptr;
}

}  // namespace detail

template <std::derived_from<registry::Sink> S>
constexpr ringmain_plugin_provider_v1 sink(const char* name) {
  return {
      "sink", name,
      [](void*, const char* argument, std::size_t bytes, ringmain_plugin_error* error) -> void* {
        return detail::give(
            registry::detail::make<registry::Sink, S>(std::string_view(argument, bytes)), error);
      }};
}
template <std::derived_from<registry::Source> S>
constexpr ringmain_plugin_provider_v1 source(const char* name) {
  return {"source", name,
          [](void* bus, const char* argument, std::size_t bytes,
             ringmain_plugin_error* error) -> void* {
            return detail::give(registry::detail::make<registry::Source, S>(
                                    *static_cast<Bus*>(bus), std::string_view(argument, bytes)),
                                error);
          }};
}
template <std::derived_from<registry::Bridge> B>
constexpr ringmain_plugin_provider_v1 bridge(const char* name) {
  return {"bridge", name,
          [](void* bus, const char* argument, std::size_t bytes,
             ringmain_plugin_error* error) -> void* {
            return detail::give(registry::detail::make<registry::Bridge, B>(
                                    *static_cast<Bus*>(bus), std::string_view(argument, bytes)),
                                error);
          }};
}

}  // namespace ringmain::plugin

#define RINGMAIN_PLUGIN(...)                                                                    \
  extern "C" __attribute__((visibility("default"))) const ringmain_plugin_table_v1*             \
  ringmain_plugin_v1() noexcept {                                                               \
    static constexpr ringmain_plugin_provider_v1 kProviders[] = {__VA_ARGS__};                  \
    static constexpr ringmain_plugin_table_v1 kTable = {sizeof(ringmain_plugin_table_v1),       \
                                                        ringmain::plugin::kAbi,                 \
                                                        ringmain::plugin::layout(),             \
                                                        sizeof kProviders / sizeof *kProviders, \
                                                        0,                                      \
                                                        kProviders};                            \
    return &kTable;                                                                             \
  }
