// Which sources of a run are heard, and which came in vain?
#include "adapters/launch/run_sources.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

using Attached = std::map<std::string, std::string>;

class RunSourcesTest : public testing::Test {
 protected:
  Bus bus_;
  const RankIdentity me_ = read_rank_identity();
  const std::vector<std::string> asked_{"heartbeat:10", "nvtx", "nobody"};
  RunSources sources_{bus_, me_, asked_};
};

TEST_F(RunSourcesTest, OnlyWhatWasAskedForMayJoin) {
  EXPECT_TRUE(sources_.join("nvtx"));
  EXPECT_FALSE(sources_.join("mpi"));
  EXPECT_FALSE(sources_.join("heart"));
  EXPECT_EQ(sources_.attached(), (Attached{{"nvtx", ""}}));
}

TEST_F(RunSourcesTest, OneThatLivesInTheProcessIsOpenedAndEnds) {
  sources_.open("heartbeat:10");
  EXPECT_EQ(sources_.attached(), (Attached{{"heartbeat", ""}}));
  sources_.end(nanoseconds(1));
  sources_.end(nanoseconds(1));
  EXPECT_EQ(sources_.attached(), (Attached{{"heartbeat", ""}})) << "it was heard";
}

TEST_F(RunSourcesTest, OneWithALibraryOfItsOwnWaitsForThat) {
  sources_.open("nvtx");
  EXPECT_TRUE(sources_.attached().empty());
}

TEST_F(RunSourcesTest, OneThatCannotBeOpenedIsSaid) {
  testing::internal::CaptureStderr();
  sources_.open("nobody");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(said.starts_with("ringmain: source nobody could not attach to ")) << said;
  ASSERT_EQ(sources_.attached().count("nobody"), 1u);
  EXPECT_NE(sources_.attached().at("nobody"), "");
}

TEST_F(RunSourcesTest, OneThatJoinedSaysItsLastOnce) {
  std::vector<nanoseconds> called;
  sources_.at_end([&](nanoseconds limit) { called.push_back(limit); });
  sources_.end(nanoseconds(7));
  sources_.end(nanoseconds(8));
  EXPECT_EQ(called, std::vector{nanoseconds(7)});
}

TEST_F(RunSourcesTest, OneThatJoinedMayStillFail) {
  EXPECT_TRUE(sources_.join("nvtx"));
  testing::internal::CaptureStderr();
  sources_.miss("nvtx:step=it", "it has no ranges");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("): it has no ranges\n"),
            std::string::npos);
  EXPECT_EQ(sources_.attached(), (Attached{{"nvtx", "it has no ranges"}}));
}

}  // namespace
}  // namespace ringmain::run
