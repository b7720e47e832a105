#include "adapters/sources/cuda/cuda_provider.hpp"

#include <string_view>

#include "adapters/registry/own_library.hpp"
#include "adapters/sources/cuda/cuda_factory.hpp"
#include "adapters/sources/cuda/cuda_options.hpp"

namespace ringmain::cuda {

// The driver loads what its variable names when it is initialised. PyTorch is to know of the source
// too, so that its profiler finds CUPTI free: `ringmain.torch` sees to that where the environment
// asks it to attach.
registry::Provider provider() {
  using How = registry::EnvironmentEdit::How;
  return {.kind = registry::ProviderKind::source,
          .name = "cuda",
          .load = [] { return registry::load_own("cuda", RINGMAIN_CUDA_FILE, kFactory); },
          .summary = "events, streams, memory and synchronization of CUDA programs, by CUPTI",
          .argument = "[WORDS]",
          .argument_fault =
              [](std::string_view argument) {
                const auto options = Options::read(argument);
                return options ? "" : options.error().message;
              },
          .run = {.environment = {{"CUDA_INJECTION64_PATH",
                                   "{libdir}/ringmain/libringmain_cuda_inject.so", How::set,
                                   "RINGMAIN_CUDA_CHAIN"},
                                  {"RINGMAIN_ATTACH", "cuda"},
                                  {"RINGMAIN_RUN_LIBRARY", "{libdir}/" RINGMAIN_RUN_FILE}},
                  .to_the_end = true}};
}

}  // namespace ringmain::cuda
