/* A program without MPI that loads a library with MPI and shows it to nobody, as Python does. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : 0;
  int (*work)(void) = library ? (int (*)(void))dlsym(library, "work") : 0;
  if (work == 0) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  return work();
}
