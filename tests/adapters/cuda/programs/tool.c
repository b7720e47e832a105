/* Another tool that a program was to have by CUDA_INJECTION64_PATH. With TOOL_TAKES=1 it takes the
 * place in CUPTI. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void nothing(void* user, int domain, unsigned cbid, const void* data) {
  (void)user, (void)domain, (void)cbid, (void)data;
}

struct Params {
  size_t bytes;
  const char* name;
  char* old_name;
  size_t old_name_bytes;
};

int InitializeInjection(void) {
  static int calls;
  static void* subscriber;
  const int call = ++calls;
  int taken = -1;
  if (getenv("TOOL_TAKES") != NULL) {
    void* const cupti = dlopen("libcupti.so.13", RTLD_NOW);
    int (*subscribe)(void**, void (*)(void*, int, unsigned, const void*), void*, struct Params*) =
        NULL;
    char old[64] = "";
    struct Params params = {sizeof params, "the other tool", old, sizeof old};
    if (cupti != NULL) *(void**)&subscribe = dlsym(cupti, "cuptiSubscribe_v2");
    if (subscribe != NULL) taken = subscribe(&subscriber, nothing, NULL, &params);
  }
  fprintf(stderr, "tool: call %d, %d\n", call, taken);
  return 1;
}
