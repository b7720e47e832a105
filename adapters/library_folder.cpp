#include "adapters/library_folder.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <system_error>

namespace ringmain::registry {

std::string library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  std::error_code error;
  const auto real = std::filesystem::absolute(info.dli_fname, error);
  return error ? "" : real.parent_path().lexically_normal().string();
}

}  // namespace ringmain::registry
