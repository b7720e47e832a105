#include "cli/watchers.hpp"

#include <algorithm>
#include <unistd.h>

#include "adapters/library_folder.hpp"
#include "adapters/sources/cuda/cupti_library.hpp"

namespace ringmain::cli {

bool is_built(const registry::Watcher& watcher) {
  return ::access((registry::library_folder() + "/" + watcher.library).c_str(), R_OK) == 0;
}

std::string no_watcher(const registry::RunNeeds& needs) {
  const auto& all = needs.watchers;
  if (all.empty() || std::any_of(all.begin(), all.end(), is_built)) return "";
  std::string packages;
  for (const registry::Watcher& one : all) {
    packages += (packages.empty() ? "" : " or ") + one.package;
  }
  return "no watcher of " + needs.watched + " was built with this ringmain; install " + packages +
         " and build it again";
}

std::string nothing_to_watch(const registry::ProviderInfo& source) {
  if (const std::string why = no_watcher(source.run); !why.empty()) return why;
  if (source.name != "cuda") return "";
  const std::string why = cuda::why_no_driver();
  // As on a machine from which a program is started on others.
  return why.empty() ? why : why + "; what it starts on a machine with a driver is heard there";
}

}  // namespace ringmain::cli
