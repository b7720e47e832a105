#include "adapters/sources/heartbeat.hpp"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::heartbeat {
namespace {

TEST(HeartbeatTest, BeatsAreCountedFromOneAndNeverComeEarly) {
  Bus bus;
  Mailbox<Beat> heard = bus.channel<Beat>().mailbox();
  auto source = Source::attach(bus, milliseconds(1));
  ASSERT_TRUE(source) << source.error().message;
  std::vector<Beat> beats;
  while (beats.size() < 5) {
    ASSERT_TRUE(heard.wait_for(std::chrono::seconds(20)));
    heard.drain([&](const Beat& beat) { beats.push_back(beat); });
  }
  EXPECT_GE(beats.front().count, 1u);
  for (std::size_t i = 0; i < beats.size(); ++i) {
    EXPECT_GE(beats[i].late_ns, 0);
    if (i > 0) {
      EXPECT_GT(beats[i].count, beats[i - 1].count);
    }
  }
}

TEST(HeartbeatTest, DestructionDoesNotWaitForThePeriod) {
  Bus bus;
  const auto before = std::chrono::steady_clock::now();
  {
    auto source = Source::attach(bus, std::chrono::hours(1));
    ASSERT_TRUE(source) << source.error().message;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
}

TEST(HeartbeatTest, APeriodOfNothingIsRefusedWithASentence) {
  Bus bus;
  const auto source = Source::attach(bus, milliseconds(0));
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Error::Code::refused);
  EXPECT_NE(source.error().message.find("above 0"), std::string::npos);
}

TEST(HeartbeatTest, SeveralSourcesOnOneBusKeepTheirOwnCounts) {
  Bus bus;
  auto& beats = bus.channel<Beat>();
  Mailbox<Beat> heard = beats.mailbox();
  auto one = Source::attach(bus, milliseconds(1));
  auto two = Source::attach(bus, milliseconds(1));
  ASSERT_TRUE(one && two);
  std::uint32_t publishers[2] = {};
  while (publishers[1] == 0) {
    ASSERT_TRUE(heard.wait_for(std::chrono::seconds(20)));
    heard.drain([&](const Beat&, const Stamp& stamp) {
      if (publishers[0] == 0) publishers[0] = stamp.publisher;
      if (stamp.publisher != publishers[0]) publishers[1] = stamp.publisher;
    });
  }
  EXPECT_NE(publishers[0], publishers[1]);
}

}  // namespace
}  // namespace ringmain::heartbeat
