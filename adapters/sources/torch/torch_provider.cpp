#include "adapters/sources/torch/torch_provider.hpp"

namespace ringmain::torch {

// PyTorch lets a package in at `import torch`, where the environment asks it to attach. A program
// without PyTorch does not notice, so nobody has to ask for it by name.
registry::Provider provider() {
  return {
      .kind = registry::ProviderKind::source,
      .name = "torch",
      .summary = "PyTorch's compiles, GPU trace and monitor events, where pip installed ringmain",
      .run = {.environment = {{"RINGMAIN_ATTACH", "torch"},
                              {"RINGMAIN_RUN_LIBRARY", "{libdir}/" RINGMAIN_RUN_FILE}},
              .at_launch = true,
              .hint = "or call ringmain.torch.attach(bus) in the Python program",
              .unasked = true}};
}

}  // namespace ringmain::torch
