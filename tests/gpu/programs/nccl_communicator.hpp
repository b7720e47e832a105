// How do the ranks of a test meet? A communicator for each case, whose name is the case's, so that
// each event says by its group which case it belongs to. Rank 0 leaves NCCL's id in a file.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "tests/gpu/programs/nccl_library.hpp"

namespace gpu {

struct Job {
  nccl::GpuNccl& nccl;
  int rank = 0;
  int ranks = 1;
  std::string meeting;  // the path that the files of ids begin with
};

inline nccl::ncclUniqueId meet(const Job& job, const std::string& name) {
  nccl::ncclUniqueId id{};
  const std::string path = job.meeting + "." + name;
  if (job.rank == 0) {
    job.nccl.must(job.nccl.GetUniqueId(&id), "ncclGetUniqueId");
    if (job.ranks == 1) return id;
    const std::string half = path + ".half";
    std::FILE* const file = std::fopen(half.c_str(), "wb");
    if (file == nullptr || std::fwrite(&id, sizeof id, 1, file) != 1 || std::fclose(file) != 0 ||
        std::rename(half.c_str(), path.c_str()) != 0) {
      std::perror("the file of ids");
      std::exit(3);
    }
    return id;
  }
  for (int i = 0; i < 12'000; ++i) {  // a minute: rank 0 may still be loading NCCL
    if (std::FILE* const file = std::fopen(path.c_str(), "rb")) {
      const bool whole = std::fread(&id, sizeof id, 1, file) == 1;
      (void)std::fclose(file);
      if (whole) return id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::fprintf(stderr, "rank 0 did not come to '%s'\n", name.c_str());
  std::exit(5);
}

/// A communicator of the job's ranks. `policy`: config.CTAPolicy, where it is not negative.
class Communicator {
 public:
  Communicator(const Job& job, const std::string& name, int policy = -1) : job_(job), name_(name) {
    nccl::ncclConfig_t config = plain();
    config.commName = name_.c_str();
    if (policy >= 0) config.CTAPolicy = policy;
    job_.nccl.must(
        job_.nccl.CommInitRankConfig(&comm, job.ranks, meet(job, name), job.rank, &config),
        "ncclCommInitRankConfig");
    must_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() {
    (void)cudaStreamSynchronize(stream);
    if (comm != nullptr) {
      (void)job_.nccl.CommFinalize(comm);
      (void)job_.nccl.CommDestroy(comm);
    }
    (void)cudaStreamDestroy(stream);
  }
  nccl::ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  static nccl::ncclConfig_t plain() {
#ifdef NCCL_CONFIG_INITIALIZER
    return NCCL_CONFIG_INITIALIZER;
#else
    return {};
#endif
  }
  const Job& job_;
  const std::string name_;
};

/// Memory of the GPU's.
class Memory {
 public:
  explicit Memory(std::size_t bytes) { must_cuda(cudaMalloc(&at, bytes), "cudaMalloc"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { (void)cudaFree(at); }
  void* at = nullptr;
};

}  // namespace gpu
