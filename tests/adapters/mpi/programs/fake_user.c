/* Calls the unknown MPI of fake_mpi.c once, and ends with its answer. */
int MPI_Init(int* argc, char*** argv);

int main(void) {
  return MPI_Init(0, 0);
}
