/* An MPI that ringmain does not know. */
int PMPI_Get_library_version(char* version, int* size) {
  static const char kSaid[] = "Elsewhere MPI 7";
  for (*size = 0; kSaid[*size] != 0; ++*size) version[*size] = kSaid[*size];
  version[*size] = 0;
  return 0;
}
int PMPI_Init(int* argc, char*** argv) {
  return argc == 0 && argv == 0 ? 3 : 4;
}
int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}
