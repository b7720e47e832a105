// Where do a run's events go, and is what does not arrive said?
#include "adapters/launch/run_sinks.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

struct Tick {
  std::uint64_t number = 0;
};
constexpr auto describe(EventOf<Tick>) {
  return event("tests.launch.tick", field<&Tick::number>("number", Unit::count));
}

class RunSinksTest : public testing::Test {
 protected:
  ~RunSinksTest() override { std::filesystem::remove(file_); }
  void publish(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) bus_.channel<Tick>().post({i});
    ASSERT_TRUE(bus_.flush(std::chrono::seconds(30)));
  }
  [[nodiscard]] std::size_t lines() const {
    std::ifstream from(file_);
    std::size_t found = 0;
    for (std::string line; std::getline(from, line);)
      found += line.find("tests.launch.tick") != line.npos ? 1u : 0u;
    return found;
  }

  Bus bus_;
  const RankIdentity me_ = read_rank_identity();
  const std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) / ("run_sinks." + std::to_string(me_.pid));
  RunSinks sinks_{bus_, me_, {}};
  const std::atomic<bool> over_{false};
};

TEST_F(RunSinksTest, WhatWasPublishedIsInTheFileAtTheEnd) {
  sinks_.open("json_lines:" + file_.string());
  EXPECT_FALSE(sinks_.none_is_open());
  EXPECT_TRUE(sinks_.all_are_open());
  publish(7);
  EXPECT_EQ(sinks_.close(over_), 0u);
  EXPECT_EQ(lines(), 7u);
}

TEST_F(RunSinksTest, AFlushedFileHoldsWhatWasPublished) {
  sinks_.open("json_lines:" + file_.string());
  publish(3);
  sinks_.flush();
  EXPECT_EQ(lines(), 3u);
  EXPECT_GE(sinks_.arrived(), 3u);
  EXPECT_EQ(sinks_.close(over_), 0u);
}

TEST_F(RunSinksTest, OneThatCannotBeOpenedIsSaidAndItsEventsAreCounted) {
  testing::internal::CaptureStderr();
  sinks_.open("json_lines:/nowhere/at/all.jsonl");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().starts_with(
      "ringmain: sink json_lines could not open in "));
  EXPECT_TRUE(sinks_.none_is_open());
  EXPECT_FALSE(sinks_.all_are_open());
  sinks_.open_one_that_counts();
  EXPECT_FALSE(sinks_.none_is_open());
  publish(1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(sinks_.say_unopened(), 1u);
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(": 1 event was not written\n"));
  publish(4);
  testing::internal::CaptureStderr();
  EXPECT_EQ(sinks_.say_unopened(), 5u);
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(": 5 events were not written\n"));
}

TEST_F(RunSinksTest, NothingIsSaidWhereAllAreOpen) {
  sinks_.open_one_that_counts();
  publish(1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(sinks_.say_unopened(), 0u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(RunSinksTest, WhatAFullDiskTakesIsCountedAndSaid) {
  sinks_.open("json_lines:/dev/full");
  publish(2);
  testing::internal::CaptureStderr();
  EXPECT_GE(sinks_.close(over_), 2u);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("ringmain: sink json_lines of "), std::string::npos) << said;
}

}  // namespace
}  // namespace ringmain::run
