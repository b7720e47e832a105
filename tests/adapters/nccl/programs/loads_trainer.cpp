// A program that loads what calls NCCL for itself alone, as Python does.
#include <cstdio>
#include <dlfcn.h>

int main(int argc, char** argv) {
  void* const library = argc > 1 ? ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 100;
  }
  auto* const train = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "train"));
  return train == nullptr ? 101 : train(argc > 2 ? argv[2] : "");
}
