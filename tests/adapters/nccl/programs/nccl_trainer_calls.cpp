// A program that calls NCCL as any does, and knows nothing of ringmain. Its one argument says what
// it does. Built once as a program and once as a library that another one loads for itself.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/sources/nccl/nccl_functions.hpp"
#include "adapters/sources/nccl/nccl_types.hpp"

#include "tests/adapters/nccl/fake/fake_nccl.hpp"

namespace ringmain::nccl {
extern "C" {
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommCount(ncclComm_t, int*);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclBcast(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclAlltoAll(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                          cudaStream_t);
}
}  // namespace ringmain::nccl

extern "C" __attribute__((visibility("default"))) int train(const char* what);

int train(const char* what) {
  using namespace ringmain::nccl;       // NOLINT: the program's own header is not here
  using namespace ringmain::fake_nccl;  // NOLINT: as above
  ncclConfig_t config;
  config.commName = "default_pg:0";
  ncclUniqueId id;
  for (std::size_t i = 0; i < sizeof id.internal; ++i) id.internal[i] = static_cast<char>(i);
  ncclComm_t comm = nullptr;
  float a[8] = {}, b[8] = {};
  int failures = 0;
  const auto expect = [&](bool is_so, const char* fact) {
    if (is_so) return;
    ++failures;
    std::fprintf(stderr, "not so: %s\n", fact);
  };
  expect(ncclCommInitRankConfig(&comm, 2, id, 1, &config) == ncclSuccess, "made");
  int count = 0;
  expect(ncclCommCount(comm, &count) == ncclSuccess && count == 2, "asked");
  expect(ncclAllReduce(a, b, 8, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess, "all_reduce");
  expect(ncclGroupStart() == ncclSuccess, "group");
  expect(ncclBcast(a, 8, ncclFloat32, 0, comm, nullptr) == ncclSuccess, "bcast");
  expect(ncclAlltoAll(a, b, 4, ncclFloat32, comm, nullptr) == ncclSuccess, "all_to_all");
  expect(ncclGroupEnd() == ncclSuccess, "end");
  fake_nccl_fail("ncclAllReduce", 4);
  expect(ncclAllReduce(a, b, 8, ncclFloat32, ncclSum, comm, nullptr) == ncclInvalidArgument,
         "fails");
  if (std::strcmp(what, "fork") == 0) {
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(ncclAllReduce(a, b, 8, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess ? 0 : 1);
    int how = 0;
    (void)::waitpid(child, &how, 0);
    expect(how == 0, "a child calls NCCL");
  }
  expect(std::strcmp(what, "abort") == 0 ? ncclCommAbort(comm) == ncclSuccess
                                         : ncclCommDestroy(comm) == ncclSuccess,
         "end of it");
  std::printf("launched %zu, seen %zu, left %zu\n", fake_nccl_launched(), fake_nccl_seen(nullptr),
              fake_nccl_communicators());
  return failures;
}

#ifdef RINGMAIN_TEST_PROGRAM
int main(int argc, char** argv) {
  return train(argc > 1 ? argv[1] : "");
}
#endif
