/* Calls of MPI on communicators that have hooks, which are in the library that the first argument
 * names. The second says what: calls, veto and no_veto (with an error handler that returns), fatal
 * (with MPI's own), abort. Ends with 0 if all came as it should. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int (*hooks_on)(const char* group);
static void (*hooks_veto)(const char* op);
static int (*seen)(const char* what);
static int faults, rank, handled;

static void expect(int is, int should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "rank %d: %s: %d and not %d\n", rank, what, is, should);
  ++faults;
}
static void expect_seen(int pre, int ended, int failed) {
  expect(seen("pre"), pre, "pre hooks");
  expect(seen("post"), pre, "post hooks");
  expect(seen("ended"), ended, "completions");
  expect(seen("failed"), failed, "failures");
}
static int add(MPI_Comm comm) {
  int one = 1, sum = -1;
  const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  return code == MPI_SUCCESS ? sum : -code;
}
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  handled = *code;
}

static void calls(void) {
  int got = -1, i;
  MPI_Request request, ring[2];
  MPI_Comm copy, pending;
  expect(add(MPI_COMM_WORLD), 4, "a sum");
  expect_seen(1, 1, 0);
  expect(seen("one id"), 1, "one id for all");

  /* The request's end is the completion. */
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  expect_seen(2, 1, 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_seen(2, 2, 0);

  /* A persistent request asks at each start. */
  MPI_Recv_init(&got, 1, MPI_INT, (rank + 3) % 4, 5, MPI_COMM_WORLD, &ring[0]);
  MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % 4, 5, MPI_COMM_WORLD, &ring[1]);
  expect_seen(2, 2, 0);
  for (i = 0; i < 2; ++i) {
    MPI_Startall(2, ring);
    MPI_Waitall(2, ring, MPI_STATUSES_IGNORE);
    expect(got, (rank + 3) % 4, "what came");
  }
  expect_seen(6, 6, 0);
  MPI_Request_free(&ring[0]);
  MPI_Request_free(&ring[1]);

  /* What fails is told to both. */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  expect(MPI_Bcast(&got, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS, 1, "an error");
  expect_seen(7, 6, 1);
  expect(seen("threw"), 1, "calls that failed");

  /* Another communicator has hooks of its own, which stay with it when it is renamed. */
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "copy");
  expect(add(copy), 4, "a sum of the copy");
  expect_seen(7, 6, 1);
  expect(hooks_on("copy"), 1, "hooks on the copy");
  expect(add(copy), 4, "another sum of the copy");
  expect_seen(8, 7, 1);
  MPI_Comm_set_name(copy, "renamed");
  expect(add(copy), 4, "a sum under another name");
  expect_seen(9, 8, 1);
  expect(hooks_on("copy"), 0, "hooks on a name that is gone");

  /* MPI carries out what is under way when its communicator is freed. */
  pending = copy;
  MPI_Irecv(&got, 1, MPI_INT, (rank + 3) % 4, 6, copy, &request);
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % 4, 6, copy);
  MPI_Comm_free(&pending);
  expect_seen(11, 9, 1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_seen(11, 10, 1);
  expect(hooks_on("renamed"), 0, "hooks on a freed communicator");
}

static void vetoes(int followed) {
  MPI_Errhandler handler;
  MPI_Request request, ring;
  int got = 7;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  hooks_veto("all_reduce");
  expect(add(MPI_COMM_WORLD), followed ? -MPI_ERR_OTHER : 4, "a refused sum");
  expect(handled, followed ? MPI_ERR_OTHER : 0, "the error handler's code");
  expect(seen("refused"), followed, "refusals");
  MPI_Barrier(MPI_COMM_WORLD);
  hooks_veto("recv");
  if (followed) {
    handled = 0;
    expect(MPI_Irecv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request), MPI_ERR_OTHER, "a receive");
    expect(handled, MPI_ERR_OTHER, "the error handler's code of a receive");
    expect(request == MPI_REQUEST_NULL, 1, "no request");
    MPI_Recv_init(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &ring);
    expect(MPI_Start(&ring), MPI_ERR_OTHER, "a start");
    MPI_Wait(&ring, MPI_STATUS_IGNORE); /* inactive: it returns */
    MPI_Request_free(&ring);
    expect(got, 7, "what nobody received");
  }
  hooks_veto(0);
  expect(add(MPI_COMM_WORLD), 4, "a sum that nobody refuses");
  expect(seen("pre"), followed ? 5 : 3, "pre hooks");
  expect(seen("post"), followed ? 5 : 3, "post hooks");
}

int main(int argc, char** argv) {
  void* library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
  if (library == 0) return fprintf(stderr, "%s\n", dlerror()), 2;
  *(void**)&hooks_on = dlsym(library, "hooks_on");
  *(void**)&hooks_veto = dlsym(library, "hooks_veto");
  *(void**)&seen = dlsym(library, "hooks_seen");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(hooks_on("MPI_COMM_WORLD"), 1, "hooks on the world");
  if (strcmp(argv[2], "calls") == 0) calls();
  if (strcmp(argv[2], "veto") == 0) vetoes(1);
  if (strcmp(argv[2], "no_veto") == 0) vetoes(0);
  if (strcmp(argv[2], "fatal") == 0) {
    hooks_veto("all_reduce");
    add(MPI_COMM_WORLD); /* the default error handler ends the job */
    fprintf(stderr, "it goes on\n");
  }
  if (strcmp(argv[2], "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return faults != 0;
}
