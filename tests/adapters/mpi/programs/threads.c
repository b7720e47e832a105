/* Four threads in each of 4 ranks under MPI_THREAD_MULTIPLE, each with its own communicator: 200
 * rounds of an exchange that it begins and that the next thread of the rank ends, and an
 * all-reduce. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kRounds = 200 };

static int rank, size;
static MPI_Comm comms[kThreads];
static MPI_Request requests[kThreads][2];
static int got[kThreads], faults[kThreads];
static pthread_barrier_t all;

static void* work(void* at) {
  const int me = (int)(long)at, other = (me + 1) % kThreads;
  int i, sum;
  for (i = 0; i < kRounds; ++i) {
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Irecv(&got[me], 1, MPI_INT, before, i, comms[me], &requests[me][0]);
    MPI_Isend(&rank, 1, MPI_INT, next, i, comms[me], &requests[me][1]);
    pthread_barrier_wait(&all);
    MPI_Waitall(2, requests[other], MPI_STATUSES_IGNORE);
    pthread_barrier_wait(&all);
    faults[me] += got[me] != before;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[me]);
    faults[me] += sum != 6;
  }
  return 0;
}

int main(int argc, char** argv) {
  pthread_t threads[kThreads];
  int provided = 0, i, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) {
    printf("this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  pthread_barrier_init(&all, 0, kThreads);
  for (i = 0; i < kThreads; ++i) pthread_create(&threads[i], 0, work, (void*)(long)i);
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  for (i = 0; i < kThreads; ++i) {
    MPI_Comm_free(&comms[i]);
    wrong += faults[i];
  }
  MPI_Finalize();
  return wrong != 0;
}
