// A program with three copies of NVTX's headers: its own (the C++ ones), one in a library that it
// is linked with, one in a library that it loads and lets go of.
#include <cstdio>
#include <dlfcn.h>

#include <nvtx3/nvtx3.hpp>

extern "C" void range_of_linked(void);

namespace {
struct Training {
  static constexpr char const* name{"training"};
};
}  // namespace

int main(int, char** words) {
  {
    const nvtx3::scoped_range_in<Training> range{"own", nvtx3::payload{1.5}};
    range_of_linked();
  }
  for (int i = 0; i < 2; ++i) {
    void* library = ::dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    auto* say = library == nullptr ? nullptr : ::dlsym(library, "range_of_loaded");
    if (say == nullptr) return std::puts(::dlerror());
    reinterpret_cast<void (*)()>(say)();
    ::dlclose(library);
  }
  return 0;
}
