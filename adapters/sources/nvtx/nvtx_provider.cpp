#include "adapters/sources/nvtx/nvtx_provider.hpp"

#include <string_view>

#include "adapters/sources/nvtx/nvtx_steps.hpp"

namespace ringmain::nvtx {

// NVTX lets a library in at its first call only, when its variable is set.
registry::Provider provider() {
  return {.kind = registry::ProviderKind::source,
          .name = "nvtx",
          .summary = "ranges and marks that a program says through NVTX, in C, C++ and Python",
          .argument = "[step=RANGE]",
          .argument_fault =
              [](std::string_view argument) {
                const auto rules = StepRules::read(argument);
                return rules ? "" : rules.error().message;
              },
          .run = {.environment = {{"NVTX_INJECTION64_PATH", "{libdir}/ringmain/libringmain_nvtx.so",
                                   registry::EnvironmentEdit::How::set, "RINGMAIN_NVTX_CHAIN"}},
                  .at_launch = true,
                  .to_the_end = true}};
}

}  // namespace ringmain::nvtx
