// Which present and future channels does a pattern reach, and what does it see of their events?
#include "bus/pattern.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

TEST(PatternTest, ItMatchesTokenByToken) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } rows[] = {
      {"cuda.event_record", "cuda.event_record", true},
      {"cuda.event_record", "cuda.event_wait", false},
      {"cuda.*", "cuda.event_record", true},
      {"cuda.*", "cuda", false},
      {"cuda.*", "cuda.a.b", false},
      {"cuda.>", "cuda.a.b", true},
      {"cuda.>", "cuda.a", true},
      {"cuda.>", "cuda", false},
      {">", "cuda", true},
      {">", "a.b.c", true},
      {">", "", false},
      {"*", "cuda", true},
      {"*", "cuda.a", false},
      {"*.a", "cuda.a", true},
      {"*.*", "cuda.a", true},
      {"*.b.>", "a.b.c", true},
      {"*.b.>", "a.c.c", false},
      {"cud", "cuda", false},
      {"cuda", "cud", false},
      {"", "", false},
      {"", "a", false},
      {"a.", "a", false},
      {"a", "a.", false},
      {"a..b", "a.x.b", false},
      {"cuda.a", "cuda.a@2", true},  // another version of the same
      {"cuda.*", "cuda.a@12", true},
      {"cuda.a@2", "cuda.a@2", true},
      {"cuda.a@2", "cuda.a", false},
      {"cuda.a@2", "cuda.a@3", false},
      {"cuda.a", "cuda.a@", false},
      {"cuda.a", "cuda.a@b", false},
      {">", "@2", true},
      {">.a", "b.a", false},  // ">" is the rest only at the end
  };
  for (const auto& r : rows)
    EXPECT_EQ(pattern_matches(r.pattern, r.name), r.matches) << r.pattern << " " << r.name;
}

TEST(PatternTest, AFaultIsFoundInWhatCanMatchNoName) {
  for (const char* const good : {"a", "a.b", "*", ">", "a.*", "*.a.>", "a.b@2"})
    EXPECT_EQ(fault_of_pattern(good), "") << good;
  const struct {
    const char* pattern;
    const char* says;
  } rows[] = {{"", "an empty word"},
              {"own..x", "an empty word"},
              {".own", "an empty word"},
              {"own.", "an empty word"},
              {"own.>.x", "a > that is not its last word"},
              {"own.x>", "a > that is not its last word"},
              {"**", "a * beside other characters"},
              {"own.x*", "a * beside other characters"}};
  for (const auto& r : rows)
    EXPECT_NE(fault_of_pattern(r.pattern).find(r.says), std::string::npos) << r.pattern;
  EXPECT_EQ(fault_of_pattern(std::string(255, 'x')), "");
  EXPECT_NE(fault_of_pattern(std::string(256, 'x')).find("255 bytes"), std::string::npos);
}

TEST(PatternTest, ItHearsPresentAndFutureChannels) {
  Bus bus(with_workers(2));
  auto& present = bus.channel<Tick>("a.present");
  auto& other = bus.channel<Tick>("b.present");
  std::map<std::string, int> heard;
  Subscription sub =
      bus.subscribe("a.*", [&](const EventView& v) { ++heard[std::string(v.channel())]; });
  auto& future = bus.channel<Tock>("a.future");
  EXPECT_TRUE(future.wanted());
  EXPECT_FALSE(other.wanted());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(present.publish({1}), PublishCode::accepted);
    ASSERT_EQ(other.publish({1}), PublishCode::unheard);
    ASSERT_EQ(future.publish({}), PublishCode::accepted);
  }
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, (std::map<std::string, int>{{"a.present", 10}, {"a.future", 10}}));
  EXPECT_EQ(sub.stats().delivered, 20u);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_FALSE(present.wanted());
  EXPECT_FALSE(future.wanted());
  auto& later = bus.channel<Tick>("a.later");
  EXPECT_FALSE(later.wanted());
}

TEST(PatternTest, CallbacksOfOneSubscriptionNeverOverlapThoughItsChannelsDo) {
  Bus bus(with_workers(3));
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = bus.subscribe(">", [&](const EventView&) {
    if (++inside != 1) overlapped = true;
    ++heard;
    --inside;
  });
  std::vector<std::thread> publishers;
  for (const char* name : {"a", "b", "c"}) {
    publishers.emplace_back([&bus, name] {
      auto& channel = bus.channel<Tick>(name);
      for (std::uint64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(channel.publish({i}), PublishCode::accepted);
    });
  }
  for (auto& p : publishers) p.join();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 9000u);
  EXPECT_FALSE(overlapped);
}

TEST(PatternTest, AViewGivesTheEventItsSchemaAndItsStamp) {
  Bus bus(with_workers(1));
  bool looked = false;
  const Subscription sub = bus.subscribe("test.>", [&](const EventView& v) {
    looked = true;
    EXPECT_EQ(v.channel(), "test.tock");
    EXPECT_EQ(v.schema().name, "test.tock");
    EXPECT_EQ(v.stamp().sequence, 1u);
    EXPECT_EQ(v.stamp().time_from, TimeFrom::publisher);
    EXPECT_EQ(v.as<Tick>(), nullptr);
    const Tock* tock = v.as<Tock>();
    ASSERT_NE(tock, nullptr);
    EXPECT_EQ(tock->device, 3u);
    EXPECT_EQ(tock->value, 1.5f);
    ASSERT_EQ(v.bytes().size(), sizeof(Tock));
    for (const FieldSchema& f : v.schema().fields) {
      if (f.name != "n") continue;
      std::uint64_t n = 0;
      std::memcpy(&n, v.bytes().data() + f.offset, sizeof n);
      EXPECT_EQ(n, 77u);
    }
  });
  ASSERT_EQ(bus.channel<Tock>().publish({3, 1.5f, 77}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(looked);
}

TEST(PatternTest, AMailboxByPatternHoldsEventsOfAllItsChannels) {
  Bus bus(with_workers(1));
  auto box = bus.mailbox("test.*");
  ASSERT_EQ(bus.channel<Tick>().publish({1}), PublishCode::accepted);
  ASSERT_EQ(bus.channel<Tock>().publish({1, 2, 3}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(box.wait_for(kLong));
  int ticks = 0;
  int tocks = 0;
  EXPECT_EQ(box.drain([&](const EventView& v) {
    ticks += v.as<Tick>() != nullptr;
    tocks += v.as<Tock>() != nullptr;
  }),
            2u);
  EXPECT_EQ(ticks, 1);
  EXPECT_EQ(tocks, 1);
}

TEST(PatternTest, APatternMayBeResetInItsOwnCallback) {
  Bus bus(with_workers(2));
  std::atomic<int> living{0};
  std::atomic<int> heard{0};
  auto sub = std::make_unique<Subscription>();
  *sub = bus.subscribe(">", [&, c = Counted(living)](const EventView&) {
    ++heard;
    sub.reset();
  });
  for (int i = 0; i < 10; ++i) (void)bus.channel<Tick>().publish({1});
  EXPECT_TRUE(eventually([&] { return living == 0; }));
  EXPECT_EQ(heard, 1);
  EXPECT_FALSE(bus.channel<Tick>("x.y").wanted());
}

TEST(PatternTest, SubscriptionsAndChannelsMayComeAtTheSameTime) {
  Bus bus(with_workers(2));
  std::atomic<int> next{0};
  std::atomic<bool> over{false};
  std::thread maker([&] {
    while (next < 300) {
      auto& c = bus.channel<Tick>("made." + std::to_string(next++));
      (void)c.publish({1});
    }
    over = true;
  });
  while (!over) {
    std::atomic<int> living{0};
    std::atomic<std::uint64_t> heard{0};
    Subscription sub =
        bus.subscribe("made.>", [&, c = Counted(living)](const EventView&) { ++heard; });
    EXPECT_EQ(sub.reset(), Detached::done);
    EXPECT_EQ(living, 0);
  }
  maker.join();
  EXPECT_TRUE(bus.verify_accounting());
  for (const auto& name : bus.channel_names()) EXPECT_FALSE(bus.channel<Tick>(name).wanted());
}

}  // namespace
}  // namespace ringmain::tests
