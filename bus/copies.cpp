#include "bus/copies.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <link.h>
#include <new>

namespace ringmain {
namespace {

/// Names are collected first: no library may be opened while the loader's list is walked.
std::vector<std::string> loaded_objects() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(object->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

}  // namespace

std::vector<std::string> loaded_copies() {
  struct Copy {
    const void* base;
    std::string file;
  };
  std::vector<Copy> copies;
  const auto note = [&copies](const void* inside) {
    Dl_info info{};
    if (::dladdr(inside, &info) == 0 || info.dli_fname == nullptr) return;
    if (std::none_of(copies.begin(), copies.end(),
                     [&](const Copy& c) { return c.base == info.dli_fbase; }))
      copies.push_back({info.dli_fbase, info.dli_fname});
  };
  note(reinterpret_cast<const void*>(&loaded_copies));
  for (const std::string& name : loaded_objects()) {
    void* object = ::dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) continue;  // the kernel's own, or unloaded meanwhile
    // dlsym() also finds it in what the object depends on: dladdr() says which file has it.
    if (const void* symbol = ::dlsym(object, "ringmain_c_abi")) note(symbol);
    ::dlclose(object);
  }
  std::vector<std::string> files;
  for (const Copy& copy : copies) files.push_back(copy.file);
  return files;
}

void detail::tell_of_copies() noexcept {
  try {
    const std::vector<std::string> files = loaded_copies();
    if (files.size() < 2) return;
    std::string list = files.front();
    for (std::size_t i = 1; i < files.size(); ++i) list += ", " + files[i];
    std::fprintf(stderr,
                 "ringmain: %zu copies of the library are in this process (%s): each has a process "
                 "bus of its own, and what is said on one is not heard on another; keep one of "
                 "them.\n",
                 files.size(), list.c_str());
  } catch (const std::bad_alloc&) {
    // Without memory the copies are not named.
  }
}

}  // namespace ringmain
