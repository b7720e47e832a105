// Execs by lists of words where nothing may be allocated: after a vfork, and in a handler that
// interrupted malloc. The allocator is this program's own, and ends the process when a thread that
// may not allocate does.
//
// listed WAY; ways: execl, execlp, execle, execl_many, execl_none
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);

static __thread volatile int may_not_allocate;

static void look(void) {
  static const char kText[] = "allocated where it may not\n";
  if (may_not_allocate == 0) return;
  (void)!write(1, kText, sizeof kText - 1);
  abort();
}
void* malloc(size_t size) {
  look();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  look();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  look();
  return __libc_realloc(old, size);
}

#define TEN(x) x, x, x, x, x, x, x, x, x, x

static const char* way;

static void exec_by_list(int number) {
  char* const environment[] = {"A=given", NULL};
  (void)number;
  may_not_allocate = 1;
  errno = 0;
  // Fails first: what comes after an exec that failed is as before it.
  execl("/nowhere/at/all", "x", "y", NULL);
  if (errno != ENOENT) _exit(98);
  if (strcmp(way, "execl") == 0)
    execl("/bin/sh", "sh", "-c", "echo $0 $1 $#", "zero", "one", "two", NULL);
  if (strcmp(way, "execlp") == 0) execlp("sh", "sh", "-c", "echo $0 $#", "zero", NULL);
  if (strcmp(way, "execle") == 0) {
    execle("/bin/sh", "sh", "-c", "echo $A $HOME", NULL, environment);
  }
  if (strcmp(way, "execl_many") == 0) {
    execl("/bin/sh", "sh", "-c", "echo $# ${1000}", "zero", TEN(TEN(TEN("w"))), TEN(TEN(TEN("v"))),
          NULL);
  }
  if (strcmp(way, "execl_none") == 0) {
    execl("/nowhere/at/all", NULL);
    _exit(errno == ENOENT ? 7 : 97);
  }
  _exit(99);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  way = argv[1];
  const pid_t child = vfork();
  if (child == 0) exec_by_list(0);
  int status = 0;
  may_not_allocate = 0;  // a vfork's child has its parent's memory
  waitpid(child, &status, 0);
  dprintf(1, "%d\n", WEXITSTATUS(status));
  signal(SIGUSR1, exec_by_list);
  raise(SIGUSR1);
  return 1;
}
