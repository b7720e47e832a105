#include "adapters/registry/own_library.hpp"

#include <dlfcn.h>
#include <string>

#include "adapters/library_folder.hpp"

namespace ringmain::registry {

Result<Factory> load_own(const char* source, const char* file, const char* function) {
  const std::string path = library_folder() + "/" + file;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  using Make = void(Factory*);
  auto* const make =
      library == nullptr ? nullptr : reinterpret_cast<Make*>(::dlsym(library, function));
  if (make == nullptr) {
    const char* const why = ::dlerror();
    return Error{Error::Code::not_found,
                 "the library of the source " + std::string(source) +
                     " cannot be loaded; install ringmain again: " + (why == nullptr ? path : why)};
  }
  Factory made;
  make(&made);
  return made;
}

}  // namespace ringmain::registry
