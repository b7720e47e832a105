// Two copies of the library in one process, as two wheels bring them: both work, and each has its
// own process bus. This program links neither; it loads two plugins, each with its own copy.
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>

namespace {

struct Loaded {
  void* handle;
  explicit Loaded(const char* path) : handle(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) std::fprintf(stderr, "%s\n", ::dlerror());
  }
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(handle, name));
  }
};

int fail(const char* what) {
  std::fprintf(stderr, "two copies: %s\n", what);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return fail("usage: two_copies PLUGIN SECOND_PLUGIN");
  const Loaded plugins[] = {Loaded(arguments[1]), Loaded(arguments[2])};
  void* buses[2] = {};
  for (int i = 0; i < 2; ++i) {
    if (plugins[i].handle == nullptr) return 1;
    buses[i] = plugins[i].function<void*()>("process_bus")();
    plugins[i].function<void(void*)>("attach")(buses[i]);
  }
  if (buses[0] == buses[1]) return fail("they share a process bus, so there are not two copies");
  for (const Loaded& p : plugins) p.function<void(std::uint64_t)>("publish")(500);
  for (const Loaded& p : plugins) {
    // Each hears its own copy's events and no others.
    if (p.function<int(std::uint64_t)>("heard")(500) != 1) return fail("a count is wrong");
    if (p.function<int()>("detach")() != 1) return fail("a plugin does not detach");
  }
  return 0;
}
