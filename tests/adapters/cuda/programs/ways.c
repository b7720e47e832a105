/* A program that knows nothing of ringmain, calls CUDA and ends in the way that its argument says.
 * usage: ways WAY [COUNT]. It is linked with nothing of CUDA's and built without its headers. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/adapters/cuda/programs/calls.h"

static int in_child(void (*child)(long), long count) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) child(count);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) exit(94);
  return WEXITSTATUS(status);
}

static void child_calls(long count) {
  start();
  call(&count);
  exit(6);
}
static void child_exits(long count) {
  (void)count;
  exit(7);
}
static void child_becomes_another(long count) {
  (void)count;
  execlp("true", "true", (char*)NULL);
  exit(95);
}

static atomic_long made;
static void* call_for_ever(void* nothing) {
  long once = 1;
  (void)nothing;
  for (;; ++made) call(&once);
}
/* Returns while four threads go on, after they have made so many calls. */
static void let_others_call(long count) {
  pthread_t thread;
  int i;
  for (i = 0; i < 4; ++i) pthread_create(&thread, NULL, call_for_ever, NULL);
  while (made < 4 * count) sched_yield();
}
static void hoard(long count) {
  Event event;
  while (count-- > 0) {
    if (cuda.event_create(&event)) exit(96);
  }
}

int main(int words, char** word) {
  const char* const way = words > 1 ? word[1] : "";
  long count = words > 2 ? atol(word[2]) : 1;
  int status = 0;
  if (strcmp(way, "idle") == 0) return 3;
  load();
  if (strcmp(way, "loads") == 0) return 3;
  if (strcmp(way, "child_first") == 0) status = in_child(child_calls, count);
  if (strcmp(way, "begins") != 0) start();
  call(&count);
  if (strcmp(way, "child_after") == 0) status = in_child(child_exits, count);
  if (strcmp(way, "child_execs") == 0) status = in_child(child_becomes_another, count);
  if (strcmp(way, "threads") == 0) {
    pthread_t thread[4];
    int i;
    for (i = 0; i < 4; ++i) pthread_create(&thread[i], NULL, call, &count);
    for (i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  }
  if (strcmp(way, "hoards") == 0) hoard(count);
  if (strstr(way, "among_calls") != NULL) let_others_call(count);
  if (strcmp(way, "exit_among_calls") == 0) exit(8);
  if (strcmp(way, "_exit_among_calls") == 0) _exit(9);
  if (strcmp(way, "_exit") == 0) _exit(5);
  if (strcmp(way, "exec") == 0) execlp("true", "true", (char*)NULL);
  if (strcmp(way, "killed") == 0) raise(SIGKILL);
  if (strcmp(way, "pthread_exit") == 0) pthread_exit(NULL);
  printf("%s %d\n", way, status);
  return 0;
}
