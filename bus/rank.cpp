#include "bus/rank.hpp"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <unistd.h>

namespace ringmain {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* local_rank;
  const char* world;
  const char* local_world;
  const char* job;
  const char* attempt;
};
// torchrun comes before the batch system: under `srun torchrun` the ranks are torchrun's.
constexpr Launcher kLaunchers[] = {
    {"ringmain", "RINGMAIN_RANK", "RINGMAIN_LOCAL_RANK", "RINGMAIN_WORLD_SIZE",
     "RINGMAIN_LOCAL_WORLD_SIZE", "RINGMAIN_JOB", "RINGMAIN_ATTEMPT"},
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_ess_base_jobid", ""},
    {"flux", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", "", "FLUX_JOB_ID", ""},
    {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE",
     "SLURM_JOB_ID", "SLURM_RESTART_COUNT"},
    {"pmix", "PMIX_RANK", "", "", "", "PMIX_NAMESPACE", ""},
    {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID", ""},
};

std::optional<std::string> text(const char* name) {
  const char* value = *name == '\0' ? nullptr : std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::uint32_t> number(const char* name) {
  const auto value = text(name);
  std::uint32_t n = 0;
  if (!value) return std::nullopt;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), n);
  if (error != std::errc{} || end != value->data() + value->size()) return std::nullopt;
  return n;
}

std::string plain(std::string_view s) {
  std::string safe;
  for (char c : s.substr(0, 128)) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    safe += fine ? c : '_';
  }
  return safe == "." || safe == ".." ? std::string(safe.size(), '_') : safe;
}

}  // namespace

RankIdentity read_rank_identity() {
  RankIdentity me;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) me.host = host;
  if (me.host.empty()) me.host = "localhost";
  me.pid = ::getpid();
  me.launcher = "none";
  std::optional<std::uint32_t> rank, local, world, local_world, attempt;
  std::optional<std::string> job;
  for (const Launcher& l : kLaunchers) {
    if (!rank && (rank = number(l.rank))) me.launcher = l.name;
    if (!local) local = number(l.local_rank);
    if (!world) world = number(l.world);
    if (!local_world) local_world = number(l.local_world);
    if (!attempt) attempt = number(l.attempt);
    if (!job) job = text(l.job);
  }
  me.rank = rank.value_or(0);
  me.local_rank = local.value_or(0);
  me.world_size = world.value_or(1);
  me.local_world_size = local_world.value_or(1);
  me.attempt = attempt.value_or(0);
  me.job = job.value_or("");
  return me;
}

const RankIdentity& rank_identity() {
  static const RankIdentity& me =
      *new RankIdentity(read_rank_identity());  // never destroyed: sinks may outlive static objects
  return me;
}

std::string expand_path(std::string_view path, const RankIdentity& me) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%' || i + 1 == path.size()) {
      out += path[i];
      continue;
    }
    switch (path[++i]) {
      case 'r':
        out += std::to_string(me.rank);
        break;
      case 'p':
        out += std::to_string(me.pid);
        break;
      case 'h':
        out += plain(me.host);
        break;
      case 'j':
        out += me.job.empty() ? "job" : plain(me.job);
        break;
      case '%':
        out += '%';
        break;
      default:
        (out += '%') += path[i];
        break;
    }
  }
  return out;
}

}  // namespace ringmain
