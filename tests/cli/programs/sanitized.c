/* A program built with a sanitizer: sound, or with a fault that only this sanitizer finds.
 *
 * sanitized [fault], or: sanitized awaits FILE, which goes on once something stands in FILE */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int shared;

static void* work(void* given) {
  char* some = malloc(100);
  memset(some, 1, 100);
  shared = some[5];
  free(some);
  return given;
}

/* Or once a minute is over, which the test then sees. */
static void await(const char* file) {
  const struct timespec some = {0, 1000000};
  struct stat found;
  for (int i = 0; i < 60000 && (stat(file, &found) != 0 || found.st_size == 0); ++i) {
    nanosleep(&some, NULL);
  }
}

int main(int count, char** words) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
  if (count > 2 && strcmp(words[1], "awaits") == 0) await(words[2]);
  if (count > 1 && strcmp(words[1], "fault") == 0) {
    char* volatile gone = malloc(3);
    free(gone);
    gone[0] = 1;
  }
  printf("ran %d\n", shared);
  return 3;
}
