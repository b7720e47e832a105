#include "adapters/sources/nccl/nccl_provider.hpp"

#include <string_view>

#include "adapters/registry/own_library.hpp"
#include "adapters/sources/nccl/nccl_factory.hpp"
#include "adapters/sources/nccl/nccl_options.hpp"

namespace ringmain::nccl {

// NCCL loads what its variable names when its first communicator is made. It has one place: the
// plugin that was there is kept, and comes behind ringmain's.
registry::Provider provider() {
  using How = registry::EnvironmentEdit::How;
  return {.kind = registry::ProviderKind::source,
          .name = "nccl",
          .load = [] { return registry::load_own("nccl", RINGMAIN_NCCL_FILE, kFactory); },
          .summary = "what NCCL says of its operations, proxies and kernels, by a profiler plugin",
          .argument = "[WORDS]",
          .argument_fault =
              [](std::string_view argument) {
                const auto options = Options::read(argument);
                return options ? "" : options.error().message;
              },
          .run = {.environment = {{"NCCL_PROFILER_PLUGIN",
                                   "{libdir}/ringmain/libnccl-profiler-ringmain.so", How::set,
                                   "RINGMAIN_NCCL_CHAIN"}},
                  .to_the_end = true}};
}

}  // namespace ringmain::nccl
