// An NCCL that is too old for a profiler plugin of ringmain's, for who asks which one it is.
extern "C" [[gnu::visibility("default")]] int ncclGetVersion(int* version) {
  *version = 22602;
  return 0;
}
