// What does a plugin's one symbol, ringmain_plugin_v1, give? A table of plain structs, which a
// program reads before it calls anything of the plugin. adapters/plugin.hpp fills it.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

/// Why an open() failed: one sentence, ended by a zero, and Error::Code as a number.
struct ringmain_plugin_error {
  std::int32_t code;
  char text[508];
};
struct ringmain_plugin_provider_v1 {
  const char* kind;  // "source", "sink" or "bridge"
  const char* name;
  /// A Source*, Sink* or Bridge* as void*, for the caller to delete, or nullptr and `error` filled.
  /// Never throws. `bus` is a ringmain::Bus*, nullptr for sinks.
  void* (*open)(void* bus, const char* argument, std::size_t bytes, ringmain_plugin_error* error);
};
struct ringmain_plugin_table_v1 {
  std::uint32_t bytes;      // sizeof of this, as the plugin knows it
  std::uint32_t abi;        // ringmain::plugin::kAbi of the plugin
  std::uint64_t layout;     // ringmain::plugin::layout() of the plugin
  std::uint32_t providers;  // how many
  std::uint32_t unused;
  const ringmain_plugin_provider_v1* list;
};

// Plugin and program may be of different builds: what is there stays where it is.
static_assert(sizeof(ringmain_plugin_error) == 512 && offsetof(ringmain_plugin_error, text) == 4);
static_assert(offsetof(ringmain_plugin_provider_v1, kind) == 0 &&
              offsetof(ringmain_plugin_provider_v1, name) == sizeof(void*) &&
              offsetof(ringmain_plugin_provider_v1, open) == 2 * sizeof(void*) &&
              sizeof(ringmain_plugin_provider_v1) == 3 * sizeof(void*));
static_assert(offsetof(ringmain_plugin_table_v1, bytes) == 0 &&
              offsetof(ringmain_plugin_table_v1, abi) == 4 &&
              offsetof(ringmain_plugin_table_v1, layout) == 8 &&
              offsetof(ringmain_plugin_table_v1, providers) == 16 &&
              offsetof(ringmain_plugin_table_v1, list) == 24);

/// The symbol. RINGMAIN_PLUGIN defines it in a plugin.
__attribute__((visibility("default"))) const ringmain_plugin_table_v1*
ringmain_plugin_v1() noexcept;

}  // extern "C"
