// A program that loads a publishing library in the way that its argument says.
// usage: loader plain|deepbind|namespace LIBRARY COUNT
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  void* library = NULL;
  if (strcmp(argv[1], "namespace") == 0)
    library = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW);
  else
    library = dlopen(argv[2], RTLD_NOW | (strcmp(argv[1], "deepbind") == 0 ? RTLD_DEEPBIND : 0));
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*const publish)(int) = (int (*)(int))dlsym(library, "publish_loaded");
  if (publish == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  printf("%d\n", publish(atoi(argv[3])));
  return 5;
}
