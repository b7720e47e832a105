/* Calls of MPI inside the operations of another source, which is in the library that its first
 * argument names. Ends with 0 if all came as it should. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static unsigned long long (*begin)(const char* op, unsigned long long bytes);
static void (*leave)(void);
static int (*completed)(unsigned long long id);
static unsigned long long (*late)(void);
static int faults;

static void expect(int is, int should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "%s is %d and not %d\n", what, is, should);
  ++faults;
}

static int add(int mine) {
  int sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

int main(int argc, char** argv) {
  unsigned long long id;
  int rank, mine = 1, sum = 0;
  MPI_Request request;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == 0) return fprintf(stderr, "%s\n", dlerror()), 2;
  *(void**)&begin = dlsym(library, "outer_begin");
  *(void**)&leave = dlsym(library, "outer_leave");
  *(void**)&completed = dlsym(library, "outer_completed");
  *(void**)&late = dlsym(library, "outer_late");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

  /* Left to MPI: the blocking call's return is its end. */
  id = begin("all_reduce", 1000);
  expect(add(1), 4, "the first sum");
  leave();
  expect(completed(id), 0, "the end, said after MPI's,");

  /* Another operation: what it is made of is not its end, and is not issued. */
  id = begin("barrier", 0);
  expect(add(1), 4, "the second sum");
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % 4, 1, &mine, 1, MPI_INT, (rank + 3) % 4, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  leave();
  expect(completed(id), 1, "the end that only the outer one knows");

  /* A request ends it, long after the mark is gone. */
  mine = 1;
  id = begin("all_reduce", 1000);
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  leave();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum, 4, "the third sum");
  expect(completed(id), 0, "the end, said after MPI_Wait's,");

  /* The call fails. */
  id = begin("broadcast", 8);
  expect(MPI_Bcast(&mine, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS, 1,
         "a broadcast of no type");
  leave();
  expect(completed(id), 0, "the end of what has failed");

  /* One of its own again. */
  expect(add(1), 4, "the last sum");
  expect((int)late(), 3, "words that came late");
  MPI_Finalize();
  return faults != 0;
}
