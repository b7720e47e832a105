// Has a loaded library a table that this version can read?
#include <dlfcn.h>

#include "adapters/plugins/probe.hpp"

namespace ringmain::registry {

TableLook look_at_table(void* handle) {
  using EntryPoint = const ringmain_plugin_table_v1*();
  auto* const entry = reinterpret_cast<EntryPoint*>(::dlsym(handle, "ringmain_plugin_v1"));
  if (entry == nullptr) {
    return {nullptr, "it has no ringmain_plugin_v1; end it with RINGMAIN_PLUGIN(…)"};
  }
  const ringmain_plugin_table_v1* table = entry();
  if (table == nullptr) return {nullptr, "its ringmain_plugin_v1 gives nothing"};
  if (table->abi != plugin::kAbi || table->bytes < sizeof *table) {
    return {nullptr, "it speaks plugin ABI " + std::to_string(table->abi) + " and this ringmain " +
                         std::to_string(plugin::kAbi) + "; build it against this ringmain"};
  }
  if (table->layout != plugin::layout()) {
    return {nullptr, "it was built against another ringmain; build it against this one"};
  }
  if (table->providers > 64 || (table->providers > 0 && table->list == nullptr)) {
    return {nullptr, "its table is damaged; install it again"};
  }
  return {table, ""};
}

}  // namespace ringmain::registry
