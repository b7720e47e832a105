// Which process of the job is this, and what are its files called?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ringmain {

/// From the variables of RINGMAIN_*, torchrun, Slurm, Open MPI, PMI/PMIx and Flux, in this order:
/// each value from the first that has it. A process without any is rank 0 of 1.
struct RankIdentity {
  std::string host;
  std::int64_t pid = 0;
  std::uint32_t rank = 0, local_rank = 0, world_size = 1, local_world_size = 1;
  std::string job;  // "" when no launcher says one
  std::uint32_t attempt = 0;
  std::string launcher;  // where the rank is from: "torchrun", "slurm", … or "none"
};

/// Read once, at the first call. Threads: any.
[[nodiscard]] const RankIdentity& rank_identity();
/// Reads the environment at each call.
[[nodiscard]] RankIdentity read_rank_identity();

/// Replaces %r (rank), %p (pid), %h (host), %j (job, or "job") and %% in a path; any other % stays.
/// Host and job may hold only letters, digits, '.', '_' and '-': others become '_', so that neither
/// can leave its directory.
[[nodiscard]] std::string expand_path(std::string_view path, const RankIdentity& identity);

}  // namespace ringmain
