/* Calls every collective of MPI-3.1 once, on 4 ranks: blocking, then without blocking. Ends with 0
 * if all moved what they should. */
#include <mpi.h>
#include <stdio.h>

enum { kRanks = 4 };

static int rank;
static int faults;

static void expect(int is, int should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "rank %d: %s is %d and not %d\n", rank, what, is, should);
  ++faults;
}

static int counts[kRanks] = {1, 2, 1, 2};
static int places[kRanks] = {0, 1, 3, 4};
static int ones[kRanks] = {1, 1, 1, 1};
static int ramp[kRanks] = {0, 1, 2, 3};
static int bytes[kRanks] = {0, 4, 8, 12};
static MPI_Aint addresses[kRanks] = {0, 4, 8, 12};
static MPI_Datatype types[kRanks];

static void blocking(MPI_Comm ring) {
  int give[kRanks * 2], get[kRanks * 2], one, i;
  for (i = 0; i < kRanks * 2; ++i) give[i] = rank * 10 + i;
  MPI_Barrier(MPI_COMM_WORLD);
  one = rank == 1 ? 42 : 0;
  MPI_Bcast(&one, 1, MPI_INT, 1, MPI_COMM_WORLD);
  expect(one, 42, "broadcast");
  MPI_Gather(give, 1, MPI_INT, get, 1, MPI_INT, 2, MPI_COMM_WORLD);
  if (rank == 2) expect(get[3], 30, "gather");
  MPI_Gatherv(give, counts[rank], MPI_INT, get, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) expect(get[5], 31, "gather_v");
  MPI_Scatter(give, 1, MPI_INT, &one, 1, MPI_INT, 3, MPI_COMM_WORLD);
  expect(one, 30 + rank, "scatter");
  MPI_Scatterv(give, counts, places, MPI_INT, get, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
  expect(get[0], places[rank], "scatter_v");
  MPI_Allgather(give, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD);
  expect(get[3], 30, "all_gather");
  MPI_Allgatherv(give, counts[rank], MPI_INT, get, counts, places, MPI_INT, MPI_COMM_WORLD);
  expect(get[5], 31, "all_gather_v");
  MPI_Alltoall(give, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD);
  expect(get[3], 30 + rank, "all_to_all");
  MPI_Alltoallv(give, ones, ramp, MPI_INT, get, ones, ramp, MPI_INT, MPI_COMM_WORLD);
  expect(get[3], 30 + rank, "all_to_all_v");
  MPI_Alltoallw(give, ones, bytes, types, get, ones, bytes, types, MPI_COMM_WORLD);
  expect(get[3], 30 + rank, "all_to_all_w");
  MPI_Reduce(give, get, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) expect(get[1], 64, "reduce");
  get[0] = rank;
  MPI_Allreduce(MPI_IN_PLACE, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(get[0], 6, "all_reduce");
  MPI_Reduce_scatter(give, get, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(get[0], 60 + 4 * places[rank], "reduce_scatter_v");
  MPI_Reduce_scatter_block(give, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(get[0], 60 + 4 * rank, "reduce_scatter");
  one = 1;
  MPI_Scan(&one, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(get[0], rank + 1, "scan");
  MPI_Exscan(&one, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank > 0) expect(get[0], rank, "exclusive_scan");
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, get, 1, MPI_INT, ring);
  expect(get[0] + get[1], (rank + 3) % 4 + (rank + 1) % 4, "neighbor_all_gather");
  MPI_Neighbor_allgatherv(&rank, 1, MPI_INT, get, ones, ramp, MPI_INT, ring);
  MPI_Neighbor_alltoall(give, 1, MPI_INT, get, 1, MPI_INT, ring);
  MPI_Neighbor_alltoallv(give, ones, ramp, MPI_INT, get, ones, ramp, MPI_INT, ring);
  MPI_Neighbor_alltoallw(give, ones, addresses, types, get, ones, addresses, types, ring);
}

static void wait_for(MPI_Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void nonblocking(MPI_Comm ring) {
  int give[kRanks * 2], get[kRanks * 2], one, i;
  MPI_Request r;
  for (i = 0; i < kRanks * 2; ++i) give[i] = rank * 10 + i;
  MPI_Ibarrier(MPI_COMM_WORLD, &r), wait_for(&r);
  one = rank == 1 ? 42 : 0;
  MPI_Ibcast(&one, 1, MPI_INT, 1, MPI_COMM_WORLD, &r), wait_for(&r);
  expect(one, 42, "ibcast");
  MPI_Igather(give, 1, MPI_INT, get, 1, MPI_INT, 2, MPI_COMM_WORLD, &r), wait_for(&r);
  MPI_Igatherv(give, counts[rank], MPI_INT, get, counts, places, MPI_INT, 0, MPI_COMM_WORLD, &r),
      wait_for(&r);
  MPI_Iscatter(give, 1, MPI_INT, &one, 1, MPI_INT, 3, MPI_COMM_WORLD, &r), wait_for(&r);
  expect(one, 30 + rank, "iscatter");
  MPI_Iscatterv(give, counts, places, MPI_INT, get, counts[rank], MPI_INT, 0, MPI_COMM_WORLD, &r),
      wait_for(&r);
  MPI_Iallgather(give, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD, &r), wait_for(&r);
  expect(get[3], 30, "iallgather");
  MPI_Iallgatherv(give, counts[rank], MPI_INT, get, counts, places, MPI_INT, MPI_COMM_WORLD, &r),
      wait_for(&r);
  MPI_Ialltoall(give, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD, &r), wait_for(&r);
  MPI_Ialltoallv(give, ones, ramp, MPI_INT, get, ones, ramp, MPI_INT, MPI_COMM_WORLD, &r),
      wait_for(&r);
  MPI_Ialltoallw(give, ones, bytes, types, get, ones, bytes, types, MPI_COMM_WORLD, &r),
      wait_for(&r);
  MPI_Ireduce(give, get, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &r), wait_for(&r);
  get[0] = rank;
  MPI_Iallreduce(MPI_IN_PLACE, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), wait_for(&r);
  expect(get[0], 6, "iallreduce");
  MPI_Ireduce_scatter(give, get, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), wait_for(&r);
  MPI_Ireduce_scatter_block(give, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), wait_for(&r);
  one = 1;
  MPI_Iscan(&one, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), wait_for(&r);
  expect(get[0], rank + 1, "iscan");
  MPI_Iexscan(&one, get, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), wait_for(&r);
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, get, 1, MPI_INT, ring, &r), wait_for(&r);
  MPI_Ineighbor_allgatherv(&rank, 1, MPI_INT, get, ones, ramp, MPI_INT, ring, &r), wait_for(&r);
  MPI_Ineighbor_alltoall(give, 1, MPI_INT, get, 1, MPI_INT, ring, &r), wait_for(&r);
  MPI_Ineighbor_alltoallv(give, ones, ramp, MPI_INT, get, ones, ramp, MPI_INT, ring, &r),
      wait_for(&r);
  MPI_Ineighbor_alltoallw(give, ones, addresses, types, get, ones, addresses, types, ring, &r),
      wait_for(&r);
}

int main(int argc, char** argv) {
  MPI_Comm ring;
  int size, periodic = 1, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != kRanks) return 2;
  for (i = 0; i < kRanks; ++i) types[i] = MPI_INT;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Comm_set_name(ring, "ring");
  blocking(ring);
  nonblocking(ring);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return faults != 0;
}
