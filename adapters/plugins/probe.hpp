// Would this plugin do harm when it is loaded? A process made for the purpose loads it first.
#pragma once
#include <string>

#include "adapters/plugin.hpp"

namespace ringmain::registry {

struct TableLook {
  const ringmain_plugin_table_v1* table = nullptr;
  std::string fault;  // why there is none
};
/// Looks whether a loaded library has a table, of this version.
[[nodiscard]] TableLook look_at_table(void* handle);

/// "", or what is wrong. Runs ringmain/ringmain-probe beside ringmain's libraries; where that is
/// not installed it returns "". Takes some milliseconds, at most ten seconds. The program's
/// handlers of SIGCHLD and its waits for children do not notice.
[[nodiscard]] std::string probe_plugin(const std::string& path);

}  // namespace ringmain::registry
