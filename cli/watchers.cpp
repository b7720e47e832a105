#include "cli/watchers.hpp"

#include <algorithm>
#include <string_view>
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

Unused if_never_used(const std::vector<registry::ProviderInfo>& sources) {
  const auto asks = [&sources](std::string_view name) {
    return std::any_of(sources.begin(), sources.end(),
                       [name](const registry::ProviderInfo& one) { return one.name == name; });
  };
  // Without a driver it is said beforehand. NCCL comes after CUDA.
  if (asks("cuda") && cuda::why_no_driver().empty()) {
    return {
        "CUDA was never initialised in this process; where it should have been, look whether there "
        "is a device for it (nvidia-smi -L, CUDA_VISIBLE_DEVICES)",
        "CUDA was never initialised in this process, which has started others: each of those in "
        "which it was has a line of its own; where none has one, look whether there is a device "
        "for them (nvidia-smi -L, CUDA_VISIBLE_DEVICES)"};
  }
  if (!asks("nccl")) return {};
  return {
      "NCCL never asked for ringmain's plugin in this process, as it does with the first "
      "communicator from 2.27 on; NCCL_DEBUG=INFO tells what it loads, and ringmain doctor what "
      "is in its way",
      "NCCL never asked for ringmain's plugin in this process, which has started others: each of "
      "those in which it did has a line of its own; where none has one, ringmain doctor tells "
      "what is in its way"};
}

}  // namespace ringmain::cli
