// Does an event that is heard by pattern come with the step in which it was published?
#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "events/steps/log.hpp"
#include "events/steps/source.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::step {
namespace {

using tests::Tick;
using tests::Tock;

std::string place_in_words(const Place& place) {
  return place.inside ? std::to_string(place.step) + "/" + std::string(place.phase.view()) + "/" +
                            std::to_string(place.micro_batch)
                      : "outside";
}
Step edge(std::uint64_t step, Edge which) {
  return {step, {}, 0, which, 0};
}

TEST(StepLogTest, ATimeHasThePlaceOfTheLastEdgeThatIsNotLater) {
  Log log;
  EXPECT_FALSE(log.at(100).inside);
  log.write_at(edge(1, Edge::begin), 10);
  log.write_at({1, Name("forward"), 3, Edge::begin, 0}, 20);
  log.write_at({1, Name("forward"), 3, Edge::end, 0}, 30);
  log.write_at(edge(1, Edge::end), 40);
  log.write_at(edge(2, Edge::begin), 50);
  const char* const expected[] = {"outside", "1//0", "1/forward/3", "1//0", "outside", "2//0"};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(place_in_words(log.at(10 * i + 9)), expected[i]) << i;
    EXPECT_EQ(place_in_words(log.at(10 * i)), expected[i]) << i;
  }
}

TEST(StepLogTest, WhatIsOverwrittenIsNotGuessedAt) {
  Log log;
  const auto steps = static_cast<std::int64_t>(2 * Log::kEdges);
  for (std::int64_t n = 1; n <= steps; ++n)
    log.write_at(edge(static_cast<std::uint64_t>(n), Edge::begin), n);
  EXPECT_FALSE(log.at(1).inside);
  EXPECT_FALSE(log.at(steps - static_cast<std::int64_t>(Log::kEdges)).inside);
  for (std::int64_t n = steps; n > steps - static_cast<std::int64_t>(Log::kEdges) + 1; --n)
    ASSERT_EQ(log.at(n).step, static_cast<std::uint64_t>(n));
}

TEST(StepLogTest, AReaderBesideTheWriterNeverSeesHalfAnEntry) {
  Log log;
  std::atomic<bool> over{false};
  std::atomic<std::int64_t> latest{0};
  std::thread writer([&] {
    for (std::int64_t n = 1; n <= 200'000; ++n) {
      log.write_at(
          {static_cast<std::uint64_t>(n), {}, static_cast<std::uint32_t>(n), Edge::begin, 0}, n);
      log.write_at(edge(static_cast<std::uint64_t>(n), Edge::begin), n);
      latest = n;
    }
    over = true;
  });
  std::uint64_t seen = 0;
  std::int64_t back = 0;
  while (!over) {
    const std::int64_t time = latest - back;
    back = (back + 997) % 3000;
    const Place place = log.at(time);
    if (!place.inside) continue;
    ++seen;
    ASSERT_EQ(place.step, static_cast<std::uint64_t>(time));
  }
  writer.join();
  RecordProperty("seen", static_cast<int>(seen));
}

class StepPatternTest : public testing::Test {
 protected:
  StepPatternTest() : bus_(tests::with_workers(2)) {}
  void tick() { ASSERT_TRUE(bus_.channel<Tick>().publish({1})); }

  Bus bus_;
  std::vector<std::string> heard_;
};

TEST_F(StepPatternTest, EveryChannelThatMatchesHasItsEventsPlacesFromTheFirstStepOn) {
  const Subscription joined =
      subscribe_with_step(bus_, "test.*", [this](const EventView& event, const Place& in) {
        EXPECT_EQ(event.in_step(), in);
        heard_.push_back(std::string(event.channel()) + " " + place_in_words(in));
      });
  auto steps = Source::attach(bus_).value();  // the channel is made after the subscription
  const std::string ticked(bus_.channel<Tick>().name()), tocked(bus_.channel<Tock>().name());
  tick();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  {
    const auto step = steps.step(7);
    tick();
    ASSERT_TRUE(bus_.flush(tests::kLong));
    {
      const auto phase = steps.phase(Name("forward"));
      const auto batch = steps.micro_batch(2);
      ASSERT_TRUE(bus_.channel<Tock>().publish({}));
      ASSERT_TRUE(bus_.flush(tests::kLong));
    }
    tick();
    ASSERT_TRUE(bus_.flush(tests::kLong));
  }
  tick();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  EXPECT_EQ(heard_, (std::vector<std::string>{ticked + " outside", ticked + " 7//0",
                                              tocked + " 7/forward/2", ticked + " 7//0",
                                              ticked + " outside"}));
}

/// Barriers tie every event to its step, and the reader hears them when all steps are over.
TEST_F(StepPatternTest,
       EventsOfAllThreadsHaveTheStepThatABarrierTiesThemToHoweverLateTheyAreHeard) {
  enum : std::uint64_t { kThreads = 3, kSteps = 200, kEach = 5 };
  std::uint64_t heard = 0, wrong = 0;
  const Follow follow(bus_);
  AnyMailbox box = bus_.mailbox("test.*");
  auto steps = Source::attach(bus_).value();
  std::barrier<> together(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t who = 0; who < kThreads; ++who) {
    threads.emplace_back([&, who] {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        std::unique_ptr<Source::Scope> scope;
        if (who == 0) scope = std::make_unique<Source::Scope>(steps.step(n));
        together.arrive_and_wait();  // the step has begun
        for (std::uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(bus_.channel<Tick>().publish({n}));
        together.arrive_and_wait();  // all have said theirs: it may end
      }
    });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  while (box.drain([&](const EventView& event) {
    const Place in = follow.at(event.stamp());
    ++heard;
    if (!in.inside || in.step != event.as<Tick>()->n) ++wrong;
  }) != 0) {
  }
  EXPECT_EQ(heard, kThreads * kSteps * kEach);
  EXPECT_EQ(wrong, 0u);
}

struct OtherStep {
  std::uint64_t number;
};
constexpr auto describe(EventOf<OtherStep>) {
  return event("train.step", field<&OtherStep::number>("number"));
}

TEST_F(StepPatternTest, AnotherEventOfThatNameIsLeftAlone) {
  const Subscription joined =
      subscribe_with_step(bus_, ">", [this](const EventView& event, const Place& in) {
        if (!event.channel().starts_with("bus.")) heard_.push_back(place_in_words(in));
      });
  ASSERT_TRUE(bus_.channel<OtherStep>().publish({3}));
  tick();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  EXPECT_EQ(heard_, (std::vector<std::string>{"outside", "outside"}));
}

TEST_F(StepPatternTest, AChannelThatWasAwaitedIsLeftLikeAnyOther) {
  int seen = 0;
  Subscription awaiting =
      bus_.subscribe_inline_once_made<Tick>([&seen](const Tick&) { ++seen; }, {.name = "awaits"});
  EXPECT_EQ(bus_.stats().channels.size(), 0u) << "nothing is made for it";
  tick();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(awaiting.stats().delivered, 1u);
  EXPECT_EQ(awaiting.reset(), Detached::done);
  EXPECT_EQ(bus_.channel<Tick>().publish({1}), PublishCode::unheard);
  Subscription never = bus_.subscribe_inline_once_made<Tock>([&seen](const Tock&) { ++seen; });
  EXPECT_EQ(never.reset(), Detached::done);
  bus_.channel<Tock>().post({});
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace ringmain::step
