// stat() and its like, functions of glibc 2.33. Before, they were parts of each program, which
// called what follows with the version of struct stat.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

enum { kStatVersion = 1 };
int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int descriptor, struct stat* out);
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags);

int stat(const char* path, struct stat* out) {
  return __xstat(kStatVersion, path, out);
}
int lstat(const char* path, struct stat* out) {
  return __lxstat(kStatVersion, path, out);
}
int fstat(int descriptor, struct stat* out) {
  return __fxstat(kStatVersion, descriptor, out);
}
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, folder, path, out, flags);
}
