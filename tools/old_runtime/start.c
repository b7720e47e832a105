// How a program begins, as of glibc 2.34. The new crt1.o leaves constructors to the C library; the
// old library left them to the program, and the new one still does for whoever calls it by the old
// name.
#define _GNU_SOURCE
#include <stddef.h>

typedef int Main(int, char**, char**);
int old_start(Main* main, int count, char** words, Main* init, void (*fini)(void),
              void (*loader_fini)(void), void* stack_end);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");
extern void _init(void);
typedef void Constructor(int, char**, char**);
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));

static int construct(int count, char** words, char** environment) {
  _init();
  const ptrdiff_t all = __init_array_end - __init_array_start;
  for (ptrdiff_t i = 0; i < all; ++i) __init_array_start[i](count, words, environment);
  return 0;
}

int __libc_start_main(Main* main, int count, char** words, Main* init, void (*fini)(void),
                      void (*loader_fini)(void), void* stack_end) {
  (void)init;
  (void)fini;
  return old_start(main, count, words, construct, NULL, loader_fini, stack_end);
}
