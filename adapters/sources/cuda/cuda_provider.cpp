#include "adapters/sources/cuda/cuda_provider.hpp"

#include <dlfcn.h>
#include <string>
#include <string_view>

#include "adapters/library_folder.hpp"
#include "adapters/sources/cuda/cuda_factory.hpp"
#include "adapters/sources/cuda/cuda_options.hpp"

namespace ringmain::cuda {
namespace {

/// From the library beside this one, which programs without CUDA never load. It stays loaded.
Result<registry::Factory> load() {
  const std::string path = registry::library_folder() + "/" RINGMAIN_CUDA_FILE;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* const factory =
      library == nullptr
          ? nullptr
          : reinterpret_cast<decltype(&ringmain_cuda_factory)>(::dlsym(library, kFactory));
  if (factory == nullptr) {
    const char* const why = ::dlerror();
    return Error{Error::Code::not_found,
                 "the library of the source cuda cannot be loaded; install ringmain again: " +
                     (why == nullptr ? path : std::string(why))};
  }
  registry::Factory made;
  factory(&made);
  return made;
}

}  // namespace

// The driver loads what its variable names when it is initialised. PyTorch is to know of the source
// too, so that its profiler finds CUPTI free: `ringmain.torch` sees to that where the environment
// asks it to attach.
registry::Provider provider() {
  using How = registry::EnvironmentEdit::How;
  return {.kind = registry::ProviderKind::source,
          .name = "cuda",
          .load = &load,
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
