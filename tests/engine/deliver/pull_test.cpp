// Does a reader that sleeps on a pulled channel wake for every event, with futex and descriptor?
#include "engine/deliver/pull.hpp"

#include <atomic>
#include <poll.h>
#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::push_number;
using tests::Running;

class PullTest : public ::testing::Test {
 protected:
  PullTest() {
    ChannelCoreOptions o;
    o.pulled = true;
    channel_ = running_.channel(o);
    channel_->begin_listening();
    LaneOptions lane;
    lane.capacity = 1u << 20;
    lane_ = channel_->take_lane(lane, *channel_);
  }
  ~PullTest() override { running_->retire(*channel_); }
  std::size_t read_all() {
    std::size_t n = 0;
    for (engine::Run run = take_run(*lane_, drainer_.room, 256); run.count != 0;
         run = take_run(*lane_, drainer_.room, 256)) {
      n += run.count;
      finish_run(*channel_, *lane_, run);
    }
    return n;
  }
  [[nodiscard]] bool readable(int fd, int limit_ms) const {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, limit_ms) == 1;
  }

  Running running_{1};
  Ref<ChannelCore> channel_;
  Lane* lane_ = nullptr;
  Drainer drainer_;
};

TEST_F(PullTest, AnEmptyOneTimesOut) {
  EXPECT_FALSE(wait_for_events(*channel_, 0));
  EXPECT_FALSE(wait_for_events(*channel_, 1'000'000));
}

TEST_F(PullTest, WhatIsThereIsSeenAtOnce) {
  ASSERT_EQ(push_number(*lane_, 1), Pushed::accepted);
  EXPECT_TRUE(wait_for_events(*channel_, 0));
  EXPECT_EQ(read_all(), 1u);
  EXPECT_FALSE(wait_for_events(*channel_, 0));
}

TEST_F(PullTest, NoEventIsSleptThrough) {
  constexpr std::size_t kEvents = 20'000;
  std::atomic<std::size_t> read{0};
  std::thread publisher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(push_number(*lane_, i), Pushed::accepted);
      // Now and then wait until the reader has it all, so that it sleeps again.
      if (i % 16 == 0) {
        ASSERT_TRUE(tests::eventually([&] { return read > i; })) << i;
      }
    }
  });
  while (read < kEvents) {
    ASSERT_TRUE(wait_for_events(*channel_, 60'000'000'000)) << read;
    read += read_all();
  }
  publisher.join();
}

TEST_F(PullTest, TheDescriptorIsReadableExactlyWhileEventsAreThere) {
  ASSERT_EQ(push_number(*lane_, 1), Pushed::accepted);
  const int fd = reader_fd(*channel_);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(reader_fd(*channel_), fd);
  EXPECT_TRUE(readable(fd, 0));
  before_drain(*channel_);
  EXPECT_EQ(read_all(), 1u);
  after_drain(*channel_);
  EXPECT_FALSE(readable(fd, 0));
  ASSERT_EQ(push_number(*lane_, 2), Pushed::accepted);
  EXPECT_TRUE(readable(fd, 0));
  before_drain(*channel_);
  after_drain(*channel_);  // nothing was taken
  EXPECT_TRUE(readable(fd, 0));
}

TEST_F(PullTest, NoEventIsPolledThrough) {
  constexpr std::size_t kEvents = 5'000;
  const int fd = reader_fd(*channel_);
  ASSERT_GE(fd, 0);
  std::atomic<std::size_t> read{0};
  std::thread publisher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(push_number(*lane_, i), Pushed::accepted);
      if (i % 4 == 0) {
        ASSERT_TRUE(tests::eventually([&] { return read > i; })) << i;
      }
    }
  });
  while (read < kEvents) {
    ASSERT_TRUE(readable(fd, 60'000)) << read;
    before_drain(*channel_);
    read += read_all();
    after_drain(*channel_);
  }
  publisher.join();
}

TEST_F(PullTest, StopWakesTheReader) {
  std::atomic<bool> woken{false};
  std::thread reader([&] {
    EXPECT_FALSE(wait_for_events(*channel_, 60'000'000'000));
    woken = true;
  });
  (void)running_->stop(false, -1);
  reader.join();
  EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace ringmain::engine
