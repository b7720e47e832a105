// gettid(), of glibc 2.30.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}
