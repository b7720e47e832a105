// Programs that do to descriptors, signals, stdio, processes and their end what programs do: one
// for each word. What they print is the same at every start, so that a run below something else can
// be compared with one alone.
//
// neighbour WORD [ARGUMENT…]; without a word: all words, one a line.
#define _GNU_SOURCE
#include "tests/cli/programs/neighbour.h"

static const struct neighbour* const kTables[] = {
    neighbour_descriptors, neighbour_ends, neighbour_signals, neighbour_processes, neighbour_state};

int main(int argc, char** argv) {
  neighbour_errno_at_start = errno;
  for (unsigned t = 0; t < sizeof kTables / sizeof *kTables; ++t) {
    for (const struct neighbour* n = kTables[t]; n->word != NULL; ++n) {
      if (argc < 2)
        puts(n->word);
      else if (strcmp(n->word, argv[1]) == 0)
        return n->run(argc - 2, argv + 2);
    }
  }
  if (argc < 2) return 0;
  fprintf(stderr, "neighbour: no word '%s'\n", argv[1]);
  return 99;
}
