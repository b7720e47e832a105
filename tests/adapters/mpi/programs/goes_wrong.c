/* Four ranks reduce, and rank 2 goes wrong in the 21st operation, once a file is there.
   usage: goes_wrong HOW FILE      HOW: healthy killed stopped asleep skips size */
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { kBefore = 20, kVictim = 2, kElements = 1 << 16 };
static int values[kElements + 1], sums[kElements + 1];

static void reduce(int elements) {
  MPI_Allreduce(values, sums, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void go_wrong(const char* how, const char* file) {
  while (access(file, F_OK) != 0) usleep(1000);
  if (strcmp(how, "killed") == 0) raise(SIGKILL);
  if (strcmp(how, "stopped") == 0) raise(SIGSTOP);
  while (strcmp(how, "asleep") == 0) pause();
  if (strcmp(how, "skips") == 0)
    MPI_Barrier(MPI_COMM_WORLD);
  else
    reduce(strcmp(how, "size") == 0 ? kElements + 1 : kElements);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < kBefore; ++i) reduce(8);
  if (rank == kVictim)
    go_wrong(argv[1], argv[2]);
  else
    reduce(kElements);
  while (strcmp(argv[1], "healthy") != 0) pause(); /* until the files are read */
  MPI_Finalize();
  return 0;
}
