/* Communicators that are not the world, on 4 ranks: between rank 0 and the others, named by nobody
 * and gone again 6,000 times, and a type that the program made. Ends with 0 if all came as it
 * should. */
#include <mpi.h>

static int rank;

/* Rank 0 alone is one side, and the root of what has one. */
static int between(MPI_Comm both) {
  const int alone = rank == 0, root = alone ? MPI_ROOT : 0;
  int one = rank, all[4] = {0, 0, 0, 0};
  MPI_Bcast(&one, 1, MPI_INT, root, both);
  /* What counts on one side only may be anything on the other. */
  MPI_Gather(alone ? 0 : &rank, alone ? -1 : 1, alone ? MPI_DATATYPE_NULL : MPI_INT, all, 1,
             MPI_INT, root, both);
  if (alone && all[2] != 3) return 1;
  MPI_Reduce(&rank, all, 1, MPI_INT, MPI_SUM, root, both);
  if (alone && all[0] != 6) return 1;
  MPI_Scatter(all, 1, MPI_INT, &one, 1, MPI_INT, root, both);
  MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, both);
  MPI_Allreduce(&rank, &one, 1, MPI_INT, MPI_SUM, both);
  MPI_Barrier(both);
  return one != (alone ? 6 : 0);
}

int main(int argc, char** argv) {
  MPI_Comm half, both, copy;
  MPI_Datatype pair;
  double numbers[4] = {0, 0, 0, 0};
  int faults, mine = 1, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 9, &both);
  MPI_Comm_set_name(both, "between");
  faults = between(both);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  MPI_Bcast(numbers, 2, pair, 0, MPI_COMM_WORLD);
  MPI_Type_free(&pair);
  MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, 0, MPI_COMM_SELF);
  for (i = 0; i < 6000; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_set_name(copy, "copy");
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
  }
  MPI_Finalize();
  return faults;
}
