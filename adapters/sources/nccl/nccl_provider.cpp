#include "adapters/sources/nccl/nccl_provider.hpp"

#include <dlfcn.h>
#include <string>
#include <string_view>

#include "adapters/library_folder.hpp"
#include "adapters/sources/nccl/nccl_factory.hpp"
#include "adapters/sources/nccl/nccl_options.hpp"

namespace ringmain::nccl {
namespace {

/// From the library beside this one, which programs without NCCL never load. It stays loaded.
Result<registry::Factory> load() {
  const std::string path = registry::library_folder() + "/" RINGMAIN_NCCL_FILE;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* const factory =
      library == nullptr
          ? nullptr
          : reinterpret_cast<decltype(&ringmain_nccl_factory)>(::dlsym(library, kFactory));
  if (factory == nullptr) {
    const char* const why = ::dlerror();
    return Error{Error::Code::not_found,
                 "the library of the source nccl cannot be loaded; install ringmain again: " +
                     (why == nullptr ? path : std::string(why))};
  }
  registry::Factory made;
  factory(&made);
  return made;
}

}  // namespace

// NCCL loads what its variable names when its first communicator is made. It has one place: the
// plugin that was there is kept, and comes behind ringmain's.
registry::Provider provider() {
  using How = registry::EnvironmentEdit::How;
  return {.kind = registry::ProviderKind::source,
          .name = "nccl",
          .load = &load,
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
