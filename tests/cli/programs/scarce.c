// A program in which other threads than its first get no memory from the N-th allocation on.
//
// scarce, with N in SCARCE_FROM; says at its end how many they asked for, and returns 3
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t to, size_t size);

static atomic_long asked;

static int is_refused(void) {
  const char* const from = getenv("SCARCE_FROM");
  if (from == NULL || syscall(SYS_gettid) == getpid()) return 0;
  if (++asked < atol(from)) return 0;
  errno = ENOMEM;
  return 1;
}
void* malloc(size_t size) {
  return is_refused() ? NULL : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return is_refused() ? NULL : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return is_refused() ? NULL : __libc_realloc(old, size);
}
void* aligned_alloc(size_t to, size_t size) {
  return is_refused() ? NULL : __libc_memalign(to, size);
}

int main(void) {
  const struct timespec while_ = {0, 5 * 1000 * 1000};
  nanosleep(&while_, NULL);
  printf("%ld\n", (long)asked);
  return 3;
}
