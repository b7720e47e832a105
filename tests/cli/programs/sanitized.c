/* A program that a sanitizer looks at: fine, or with a fault that only that one finds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int shared;

static void* work(void* given) {
  char* some = malloc(100);
  memset(some, 1, 100);
  shared = some[5];
  free(some);
  return given;
}

int main(int count, char** words) {
  const struct timespec while_others_work = {0, 200000000};
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  nanosleep(&while_others_work, NULL); /* so that a heartbeat has something to say */
  pthread_join(thread, NULL);
  if (count > 1 && strcmp(words[1], "fault") == 0) {
    char* volatile gone = malloc(3);
    free(gone);
    gone[0] = 1;
  }
  printf("ran %d\n", shared);
  return 3;
}
