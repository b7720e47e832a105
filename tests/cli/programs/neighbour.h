// What the files of the program neighbour share.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct neighbour {
  const char* word;
  int (*run)(int argc, char** argv);
};

/// Each ends with an entry without a word.
extern const struct neighbour neighbour_descriptors[];
extern const struct neighbour neighbour_ends[];
extern const struct neighbour neighbour_signals[];
extern const struct neighbour neighbour_processes[];
extern const struct neighbour neighbour_state[];

extern int neighbour_errno_at_start;

/// A place for events of ours meanwhile: some milliseconds.
void neighbour_linger(void);
