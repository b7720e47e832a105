// A library that says when the driver has told it to begin, and calls CUPTI and the driver there as
// a source does.
#include <cstdio>
#include <dlfcn.h>

extern "C" int InitializeInjection() {
  int number = 0;
  auto* version = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, "cuDriverGetVersion"));
  const int answer = version == nullptr ? -1 : version(&number);
  std::fprintf(stderr, "injected: %d, %d\n", answer, number);
  return 1;
}
