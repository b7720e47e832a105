// Which rank is this process, under each launcher, and what may a path be made of?
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

namespace ringmain::tests {
namespace {

constexpr std::array kRankVariables = {"RINGMAIN_RANK",
                                       "RINGMAIN_LOCAL_RANK",
                                       "RINGMAIN_WORLD_SIZE",
                                       "RINGMAIN_LOCAL_WORLD_SIZE",
                                       "RINGMAIN_JOB",
                                       "RINGMAIN_ATTEMPT",
                                       "RANK",
                                       "LOCAL_RANK",
                                       "WORLD_SIZE",
                                       "LOCAL_WORLD_SIZE",
                                       "TORCHELASTIC_RUN_ID",
                                       "TORCHELASTIC_RESTART_COUNT",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_LOCAL_SIZE",
                                       "OMPI_MCA_ess_base_jobid",
                                       "FLUX_TASK_RANK",
                                       "FLUX_TASK_LOCAL_ID",
                                       "FLUX_JOB_SIZE",
                                       "FLUX_JOB_ID",
                                       "SLURM_PROCID",
                                       "SLURM_LOCALID",
                                       "SLURM_NTASKS",
                                       "SLURM_NTASKS_PER_NODE",
                                       "SLURM_JOB_ID",
                                       "SLURM_RESTART_COUNT",
                                       "PMIX_RANK",
                                       "PMIX_NAMESPACE",
                                       "PMI_RANK",
                                       "MPI_LOCALRANKID",
                                       "PMI_SIZE",
                                       "MPI_LOCALNRANKS",
                                       "PMI_JOBID"};

class RankTest : public ::testing::Test {
 protected:
  RankTest() { clear(); }
  ~RankTest() override { clear(); }
  static void clear() {
    for (const char* v : kRankVariables) ::unsetenv(v);
  }
  static RankIdentity with(const std::vector<std::pair<const char*, const char*>>& variables) {
    clear();
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    return read_rank_identity();
  }
};

TEST_F(RankTest, AloneItIsRankZeroOfOne) {
  const RankIdentity me = read_rank_identity();
  EXPECT_EQ(me.launcher, "none");
  EXPECT_EQ(me.rank, 0u);
  EXPECT_EQ(me.world_size, 1u);
  EXPECT_EQ(me.local_world_size, 1u);
  EXPECT_EQ(me.job, "");
  EXPECT_FALSE(me.host.empty());
  EXPECT_EQ(me.pid, ::getpid());
}

TEST_F(RankTest, EveryLauncherIsUnderstood) {
  const struct {
    const char* launcher;
    std::vector<std::pair<const char*, const char*>> variables;
    bool local, world, job;
  } rows[] = {
      {"ringmain",
       {{"RINGMAIN_RANK", "5"},
        {"RINGMAIN_LOCAL_RANK", "1"},
        {"RINGMAIN_WORLD_SIZE", "8"},
        {"RINGMAIN_LOCAL_WORLD_SIZE", "4"},
        {"RINGMAIN_JOB", "j"},
        {"RINGMAIN_ATTEMPT", "2"}},
       true,
       true,
       true},
      {"torchrun",
       {{"RANK", "5"},
        {"LOCAL_RANK", "1"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"TORCHELASTIC_RUN_ID", "j"},
        {"TORCHELASTIC_RESTART_COUNT", "2"}},
       true,
       true,
       true},
      {"openmpi",
       {{"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_MCA_ess_base_jobid", "j"}},
       true,
       true,
       true},
      {"flux",
       {{"FLUX_TASK_RANK", "5"},
        {"FLUX_TASK_LOCAL_ID", "1"},
        {"FLUX_JOB_SIZE", "8"},
        {"FLUX_JOB_ID", "j"}},
       true,
       true,
       true},
      {"slurm",
       {{"SLURM_PROCID", "5"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_JOB_ID", "j"}},
       true,
       true,
       true},
      {"pmix", {{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "j"}}, false, false, true},
      {"pmi",
       {{"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "1"}, {"PMI_SIZE", "8"}, {"PMI_JOBID", "j"}},
       true,
       true,
       true},
  };
  for (const auto& row : rows) {
    const RankIdentity me = with(row.variables);
    EXPECT_EQ(me.launcher, row.launcher);
    EXPECT_EQ(me.rank, 5u) << row.launcher;
    EXPECT_EQ(me.local_rank, row.local ? 1u : 0u) << row.launcher;
    EXPECT_EQ(me.world_size, row.world ? 8u : 1u) << row.launcher;
    EXPECT_EQ(me.job, row.job ? "j" : "") << row.launcher;
  }
  EXPECT_EQ(with(rows[1].variables).attempt, 2u);
  EXPECT_EQ(with(rows[1].variables).local_world_size, 4u);
}

TEST_F(RankTest, TorchrunUnderSlurmIsTorchrun) {
  const RankIdentity me = with({{"RANK", "9"}, {"SLURM_PROCID", "1"}, {"SLURM_JOB_ID", "77"}});
  EXPECT_EQ(me.rank, 9u);
  EXPECT_EQ(me.launcher, "torchrun");
  EXPECT_EQ(me.job, "77");
}

TEST_F(RankTest, WhatIsNoNumberIsNotTaken) {
  for (const char* bad : {"", "x", "-1", "1x", "99999999999", " 1"}) {
    const RankIdentity me = with({{"RANK", bad}, {"SLURM_PROCID", "4"}});
    EXPECT_EQ(me.rank, 4u) << bad;
    EXPECT_EQ(me.launcher, "slurm") << bad;
  }
}

TEST(PathTest, PlaceholdersAreReplacedAndAllElseStays) {
  RankIdentity me;
  me.rank = 3;
  me.pid = 99;
  me.host = "node-1.example";
  me.job = "train_7";
  EXPECT_EQ(expand_path("/out/%j/%h.%r.%p.json", me), "/out/train_7/node-1.example.3.99.json");
  EXPECT_EQ(expand_path("%%r %x 100%", me), "%r %x 100%");
  EXPECT_EQ(expand_path("", me), "");
  EXPECT_EQ(expand_path("%", me), "%");
  me.job = "";
  EXPECT_EQ(expand_path("%j", me), "job");
}

TEST(PathTest, HostAndJobCannotLeaveTheirDirectory) {
  RankIdentity me;
  for (const std::string& hostile :
       {std::string("../../etc/passwd"), std::string("a/b"), std::string(".."), std::string("."),
        std::string("a\0b", 3), std::string("x\ny"), std::string(5000, 'x'), std::string("%p%r"),
        std::string("\xff\xfe")}) {
    me.host = hostile;
    me.job = hostile;
    for (const char* path : {"%h", "%j"}) {
      const std::string out = expand_path(path, me);
      EXPECT_EQ(out.find('/'), std::string::npos) << hostile;
      EXPECT_EQ(out.find('\0'), std::string::npos);
      EXPECT_EQ(out.find('%'), std::string::npos);
      EXPECT_NE(out, "..");
      EXPECT_NE(out, ".");
      EXPECT_FALSE(out.empty());
      EXPECT_LE(out.size(), 255u) << "no file system takes a longer name";
    }
  }
}

}  // namespace
}  // namespace ringmain::tests
