/* A program that does one thing and another before it first uses the bus, or never uses it.
 * usage: idler STEP…, each done in turn:
 *   say           publishes 10 events on the bus of the process
 *   threads       prints how many threads it has
 *   file          prints how many bytes the file $FILE has, or -1
 *   fork_say      a child that is forked publishes 10
 *   fork_leave    the same, and the child's main thread ends by pthread_exit
 *   thread_say    a thread with a small stack does
 *   many_say      eight threads at once publish 10 each
 *   chdir, clearenv, close_from_3, nofile, namespace, umask, replace_stderr, remove, setuid, chroot
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bindings/c/ringmain.h"

typedef struct {
  uint64_t number;
} said;

static int say(void) {
  static const ringmain_field fields[] = {
      RINGMAIN_FIELD(said, number, RINGMAIN_U64, RINGMAIN_UNIT_ID)};
  const ringmain_event_type type = {sizeof type, sizeof(said),  "program.said", fields,
                                    1,           sizeof *fields};
  ringmain_bus* bus;
  ringmain_channel* channel;
  said event;
  if (ringmain_open_process(&bus) != RINGMAIN_OK ||
      ringmain_define(bus, &type, &channel) != RINGMAIN_OK)
    return 9;
  for (event.number = 0; event.number < 10; ++event.number)
    (void)ringmain_publish(channel, &event, sizeof event);
  return 0;
}

static void* says(void* failed) {
  *(int*)failed |= say();
  return NULL;
}

static int say_in_threads(int count, size_t stack) {
  pthread_t thread[8];
  pthread_attr_t attributes;
  int failed[8] = {0}, i, any = 0;
  pthread_attr_init(&attributes);
  if (stack != 0 && pthread_attr_setstacksize(&attributes, stack) != 0) return 8;
  for (i = 0; i < count; ++i) pthread_create(&thread[i], &attributes, says, &failed[i]);
  for (i = 0; i < count; ++i) {
    pthread_join(thread[i], NULL);
    any |= failed[i];
  }
  return any;
}

static int threads(void) {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (readdir(tasks) != NULL) ++count;
  closedir(tasks);
  printf("%d\n", count - 2);
  return 0;
}

static int file(const char* path) {
  struct stat status;
  printf("%lld\n", stat(path, &status) == 0 ? (long long)status.st_size : -1LL);
  return 0;
}

static int replace_stderr(void) {
  const int taken = open("taken", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  return taken < 0 || dup2(taken, 2) != 2;
}

static int step(const char* word, const char* path) {
  const struct rlimit none = {0, 0};
  if (strcmp(word, "say") == 0) return say();
  if (strcmp(word, "threads") == 0) return threads();
  if (strcmp(word, "file") == 0) return file(path);
  if (strcmp(word, "fork_say") == 0) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(say());
    return waitpid(child, &status, 0) != child || status != 0;
  }
  if (strcmp(word, "fork_leave") == 0) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
      if (say() != 0) _exit(9);
      pthread_exit(NULL);
    }
    return waitpid(child, &status, 0) != child || status != 0;
  }
  if (strcmp(word, "thread_say") == 0)
    return say_in_threads(1, (size_t)sysconf(_SC_THREAD_STACK_MIN) + 32768);
  if (strcmp(word, "many_say") == 0) return say_in_threads(8, 0);
  if (strcmp(word, "chdir") == 0) return chdir("/");
  if (strcmp(word, "clearenv") == 0) return clearenv();
  if (strcmp(word, "close_from_3") == 0) return closefrom(3), 0;
  if (strcmp(word, "nofile") == 0) return setrlimit(RLIMIT_NOFILE, &none);
  if (strcmp(word, "namespace") == 0) return unshare(CLONE_NEWUSER);
  if (strcmp(word, "umask") == 0) return umask(0777), 0;
  if (strcmp(word, "replace_stderr") == 0) return replace_stderr();
  if (strcmp(word, "remove") == 0) return unlink(path);
  if (strcmp(word, "setuid") == 0) return setgid(4242) != 0 || setuid(4242) != 0;
  if (strcmp(word, "chroot") == 0) return chroot(".") != 0 || chdir("/") != 0;
  return 2;
}

int main(int count, char** words) {
  const char* const said_path = getenv("FILE");
  char path[PATH_MAX] = "";
  int i;
  if (said_path != NULL) strncpy(path, said_path, sizeof path - 1);
  for (i = 1; i < count; ++i) {
    const int failed = step(words[i], path);
    if (failed != 0) return fprintf(stderr, "idler: %s failed\n", words[i]), 10;
  }
  return 0;
}
