/* A program whose forked children publish; and, as a library, the same for other languages.
 * usage: forker WAY COUNT
 *   after    publishes, and then do its children
 *   nested   the same, and the children's child too
 *   before   only the children publish, and use nothing of the bus before
 *   killed   as after, and each child ends by a signal
 *   outlived as after, and the child publishes COUNT more when its parent has ended */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bindings/c/ringmain.h"

typedef struct {
  uint64_t number;
} said;

static ringmain_channel* channel_named(const char* name) {
  static const ringmain_field fields[] = {
      RINGMAIN_FIELD(said, number, RINGMAIN_U64, RINGMAIN_UNIT_ID)};
  const ringmain_event_type type = {sizeof type, sizeof(said), name, fields, 1, sizeof *fields};
  ringmain_bus* bus;
  ringmain_channel* channel;
  if (ringmain_open_process(&bus) != RINGMAIN_OK ||
      ringmain_define(bus, &type, &channel) != RINGMAIN_OK) {
    fprintf(stderr, "forker: %s\n", ringmain_last_error());
    exit(9);
  }
  return channel;
}

/* The code of the last one. */
int forker_say(uint64_t count) {
  ringmain_channel* const channel = channel_named("program.said");
  ringmain_code code = RINGMAIN_OK;
  said event;
  for (event.number = 0; event.number < count; ++event.number)
    code = ringmain_publish(channel, &event, sizeof event);
  return (int)code;
}

static ringmain_publisher* opened;

/* By a publisher from before the fork, and on a channel that nobody had before. */
static void say_otherwise(uint64_t count) {
  ringmain_channel* const fresh = channel_named("program.fresh");
  const said event = {7};
  uint64_t i;
  for (i = 0; i < count; ++i) {
    if (opened != NULL) (void)ringmain_publisher_publish(opened, &event, sizeof event);
    (void)ringmain_publish(fresh, &event, sizeof event);
  }
}

static void child(const char* way, uint64_t count, int last) {
  (void)forker_say(count);
  if (strcmp(way, "before") != 0) say_otherwise(count);
  if (strcmp(way, "nested") == 0 && !last) {
    const pid_t grandchild = fork();
    if (grandchild == 0) child(way, count, 1);
    (void)waitpid(grandchild, NULL, 0);
  }
  if (strcmp(way, "killed") == 0) raise(SIGKILL);
  last ? exit(0) : _exit(0);
}

int main(int words, char** word) {
  const char* const way = words == 3 ? word[1] : "";
  const uint64_t count = words == 3 ? strtoull(word[2], NULL, 10) : 0;
  int last;
  if (words != 3) return 2;
  if (strcmp(way, "before") != 0) {
    (void)forker_say(count);
    if (ringmain_publisher_open(channel_named("program.said"), NULL, &opened) != RINGMAIN_OK)
      return 9;
  }
  if (strcmp(way, "outlived") == 0) {
    int ended[2];
    char nothing; /* comes */
    if (pipe(ended) != 0) return 9;
    if (fork() == 0) {
      close(ended[1]);
      if (read(ended[0], &nothing, 1) != 0) return 9; /* until the parent has ended */
      child(way, count, 0);
    }
    return 0;
  }
  for (last = 0; last < 2; ++last) {
    const pid_t pid = fork();
    if (pid == 0) child(way, count, last);
    if (waitpid(pid, NULL, 0) != pid) return 9;
  }
  return 0;
}
