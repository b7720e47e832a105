/* Point-to-point calls between 4 ranks in a ring, as its first argument says:
 * blocking, waits (non-blocking, ended by Wait, Test and variants), persistent, odd (cancelled,
 * freed, looked at, to nobody), errors, fatal, abort. Ends with 0 if all came as it should. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, next, before, faults;
static MPI_Comm world = MPI_COMM_WORLD;

static void expect(int is, int should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "rank %d: %s is %d and not %d\n", rank, what, is, should);
  ++faults;
}

static void blocking(void) {
  double got[4] = {0};
  const double mine[4] = {rank, 1, 2, 3};
  char room[1024];
  MPI_Status status;
  MPI_Message message;
  MPI_Request r;
  int bytes = sizeof room;
  void* at = room;
  MPI_Buffer_attach(room, bytes);
  /* Sends that may wait go from the even ranks first. */
  if (rank % 2 == 0) {
    MPI_Send(mine, 2, MPI_DOUBLE, next, 1, world);
    MPI_Recv(got, 4, MPI_DOUBLE, before, 1, world, &status);
    MPI_Ssend(mine, 3, MPI_DOUBLE, next, 2, world);
    MPI_Recv(got, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 2, world, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(got, 4, MPI_DOUBLE, before, 1, world, &status);
    MPI_Send(mine, 2, MPI_DOUBLE, next, 1, world);
    MPI_Recv(got, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 2, world, MPI_STATUS_IGNORE);
    MPI_Ssend(mine, 3, MPI_DOUBLE, next, 2, world);
  }
  expect((int)got[0], before, "what came");
  MPI_Bsend(mine, 1, MPI_DOUBLE, next, 3, world);
  MPI_Mprobe(before, 3, world, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(got, 4, MPI_DOUBLE, &message, &status);
  MPI_Irecv(got, 4, MPI_DOUBLE, before, 4, world, &r);
  MPI_Barrier(world);
  MPI_Rsend(mine, 4, MPI_DOUBLE, next, 4, world);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Sendrecv(mine, 1, MPI_DOUBLE, next, 5, got, 2, MPI_DOUBLE, before, 5, world,
               MPI_STATUS_IGNORE);
  expect((int)got[0], before, "what was exchanged");
  got[0] = rank;
  MPI_Sendrecv_replace(got, 1, MPI_DOUBLE, next, 6, before, 6, world, &status);
  expect((int)got[0], before, "what was replaced");
  MPI_Buffer_detach(&at, &bytes);
}

/* Six receives and six sends of one int each. */
static void begin(MPI_Request* in, MPI_Request* out, int* got, const int* mine) {
  int i;
  for (i = 0; i < 6; ++i) MPI_Irecv(&got[i], 1, MPI_INT, before, 10 + i, world, &in[i]);
  for (i = 0; i < 6; ++i) MPI_Isend(&mine[i], 1, MPI_INT, next, 10 + i, world, &out[i]);
}

static void waits(void) {
  MPI_Request in[6], out[6];
  MPI_Status statuses[6];
  int got[6], mine[6], indices[6], i, done = 0, count = 0, flag = 0, index = 0;
  for (i = 0; i < 6; ++i) mine[i] = 100 * rank + i;
  begin(in, out, got, mine);
  for (i = 0; i < 6; ++i) MPI_Wait(&in[i], &statuses[i]);
  MPI_Waitall(6, out, MPI_STATUSES_IGNORE);
  expect(got[5], 100 * before + 5, "by Wait");
  begin(in, out, got, mine);
  for (i = 0; i < 6; ++i) MPI_Waitany(6, in, &index, &statuses[0]);
  MPI_Waitany(6, in, &index, &statuses[0]);
  expect(index, MPI_UNDEFINED, "the index of nothing");
  for (done = 0; done < 6; done += count)
    MPI_Waitsome(6, out, &count, indices, MPI_STATUSES_IGNORE);
  begin(in, out, got, mine);
  for (flag = 0; !flag;) MPI_Testall(6, in, &flag, statuses);
  for (i = 0; i < 6; ++i) {
    for (flag = 0; !flag;) MPI_Test(&out[i], &flag, MPI_STATUS_IGNORE);
  }
  begin(in, out, got, mine);
  for (done = 0; done < 6; done += flag) MPI_Testany(6, in, &index, &flag, MPI_STATUS_IGNORE);
  for (done = 0; done<6; done += count> 0 ? count : 0)
    MPI_Testsome(6, out, &count, indices, statuses);
  expect(got[5], 100 * before + 5, "by Testany");
  /* The other ways to send, and a receive by message. */
  {
    MPI_Message message;
    char room[1024];
    int bytes = sizeof room;
    void* at = room;
    MPI_Buffer_attach(room, bytes);
    MPI_Irecv(&got[0], 1, MPI_INT, before, 20, world, &in[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, before, 21, world, &in[1]);
    MPI_Barrier(world);
    MPI_Irsend(&mine[0], 1, MPI_INT, next, 20, world, &out[0]);
    MPI_Issend(&mine[1], 1, MPI_INT, next, 21, world, &out[1]);
    MPI_Ibsend(&mine[2], 1, MPI_INT, next, 22, world, &out[2]);
    MPI_Mprobe(before, 22, world, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(&got[2], 1, MPI_INT, &message, &in[2]);
    MPI_Waitall(3, in, statuses);
    MPI_Waitall(3, out, statuses);
    MPI_Buffer_detach(&at, &bytes);
  }
  expect(got[2], 100 * before + 2, "by message");
}

static void persistent(void) {
  MPI_Request r[2];
  int got = -1, i;
  MPI_Recv_init(&got, 1, MPI_INT, before, 30, world, &r[0]);
  MPI_Send_init(&rank, 1, MPI_INT, next, 30, world, &r[1]);
  for (i = 0; i < 5; ++i) {
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE); /* they are inactive: nothing ends */
    expect(got, before, "started again");
  }
  MPI_Start(&r[1]);
  MPI_Start(&r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
}

static void odd(void) {
  MPI_Request r;
  MPI_Status status;
  int got = -1, flag = 0;
  MPI_Irecv(&got, 1, MPI_INT, before, 40, world, &r); /* nobody sends it */
  MPI_Cancel(&r);
  MPI_Wait(&r, &status);
  MPI_Test_cancelled(&status, &flag);
  expect(flag, 1, "cancelled");
  MPI_Send(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, world);
  MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, world, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Irecv(&got, 1, MPI_INT, before, 41, world, &r);
  MPI_Send(&rank, 1, MPI_INT, next, 41, world);
  for (flag = 0; !flag;) MPI_Request_get_status(r, &flag, &status); /* told here */
  MPI_Wait(&r, &status);                                            /* and not again */
  MPI_Isend(&rank, 1, MPI_INT, next, 42, world, &r);
  MPI_Request_free(&r); /* its end is not seen */
  MPI_Recv(&got, 1, MPI_INT, before, 42, world, &status);
  expect(got, before, "of the one that was freed");
}

static void errors(void) {
  int got[2], mine[2] = {1, 2};
  MPI_Status status;
  MPI_Request r;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  expect(MPI_Send(mine, 1, MPI_INT, size + 7, 0, world) != MPI_SUCCESS, 1,
         "a send to no rank fails");
  expect(MPI_Isend(mine, 1, MPI_INT, size + 7, 0, world, &r) != MPI_SUCCESS, 1, "so does an isend");
  MPI_Irecv(got, 1, MPI_INT, before, 50, world, &r); /* one int, and two are sent */
  MPI_Send(mine, 2, MPI_INT, next, 50, world);
  expect(MPI_Wait(&r, &status) != MPI_SUCCESS, 1, "a receive into too little room fails");
  expect(MPI_Bcast(got, 1, MPI_DATATYPE_NULL, 0, world) != MPI_SUCCESS, 1,
         "a broadcast of no type fails");
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
  if (strcmp(what, "blocking") == 0) blocking();
  if (strcmp(what, "waits") == 0) waits();
  if (strcmp(what, "persistent") == 0) persistent();
  if (strcmp(what, "odd") == 0) odd();
  if (strcmp(what, "errors") == 0) errors();
  if (strcmp(what, "fatal") == 0) {
    MPI_Barrier(world);
    if (rank == 2) MPI_Send(&rank, 1, MPI_INT, size + 7, 0, world);
    MPI_Barrier(world);
  }
  if (strcmp(what, "abort") == 0) {
    MPI_Barrier(world);
    if (rank == 2) MPI_Abort(world, 7);
    MPI_Barrier(world);
  }
  MPI_Finalize();
  return faults != 0;
}
