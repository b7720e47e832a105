#include "adapters/sources/cuda/cupti_places.hpp"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <string_view>
#include <system_error>

namespace ringmain::cuda {
namespace fs = std::filesystem;
namespace {

/// From the folder of libcudart.
constexpr std::array kFolders = {
    ".",                           // nvidia/cu13/lib; targets/x86_64-linux/lib
    "../../cuda_cupti/lib",        // nvidia/cuda_runtime/lib: CUDA 12's packages
    "../../cu13/lib",              // the same beside a newer package of CUPTI
    "../extras/CUPTI/lib64",       // cuda/lib64
    "../../../extras/CUPTI/lib64"  // cuda/targets/x86_64-linux/lib
};

struct Runtimes {
  std::vector<fs::path> files;
};

int note_runtime(dl_phdr_info* library, std::size_t, void* to) {
  const std::string_view path = library->dlpi_name == nullptr ? "" : library->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.substr(0, 9) == "libcudart") static_cast<Runtimes*>(to)->files.emplace_back(path);
  return 0;
}

int has_interpreter(dl_phdr_info* program, std::size_t, void* to) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    if (program->dlpi_phdr[i].p_type == PT_INTERP) *static_cast<bool*>(to) = true;
  }
  return 1;  // the program itself comes first
}

/// "13" of libcudart.so.13, libcudart.so.13.0.96 and libcudart-8774224f.so.12.
std::string major_of(const std::string& file) {
  const std::size_t dot = file.find(".so.");
  if (dot == file.npos) return "";
  const std::size_t begin = dot + 4;
  return file.substr(begin, file.find('.', begin) - begin);
}

}  // namespace

std::string path_of(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return map->l_name;
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  return fs::equivalent(one, other, error);
}

std::vector<std::string> beside_the_runtime() {
  Runtimes runtimes;
  ::dl_iterate_phdr(&note_runtime, &runtimes);
  std::vector<std::string> there;
  for (const fs::path& runtime : runtimes.files) {
    const std::string major = major_of(runtime.filename().string());
    if (major.empty()) continue;
    for (const char* folder : kFolders) {
      const fs::path file =
          (runtime.parent_path() / folder / ("libcupti.so." + major)).lexically_normal();
      std::error_code error;
      if (fs::is_regular_file(file, error)) there.push_back(file.string());
    }
  }
  return there;
}

bool is_static_program() {
  bool dynamic = false;
  ::dl_iterate_phdr(&has_interpreter, &dynamic);
  return !dynamic;
}

}  // namespace ringmain::cuda
