// Are the events of many lanes handed out in the order of their tickets, and never held up for
// ever?
#include "engine/deliver/merge.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"

#include "tests/engine/rig.hpp"

namespace ringmain::tests {
namespace {

using engine::ChannelLine;
using engine::drain;
using engine::Lane;
using engine::Pushed;
using Numbers = std::vector<std::uint64_t>;

class MergeTest : public ::testing::TestWithParam<engine::LaneKind> {
 protected:
  void make(std::int64_t gap_ns, std::size_t lanes = 3) {
    engine::ChannelCoreOptions options;
    options.merged = true;
    options.order_gap_ns_max = gap_ns;
    channel_ = make_channel(workers_, options);
    attached_ = std::make_unique<AttachedSubscriber>(*channel_, [this](const engine::Run& run) {
      runs_.push_back(run.count);
      keep_numbers(heard_)(run);
    });
    for (std::size_t i = 0; i < lanes; ++i) lanes_[i] = take(64);
  }
  Lane* take(std::uint32_t capacity) {
    engine::LaneOptions options;
    options.kind = GetParam();
    options.capacity = capacity;
    return channel_->take_lane(options, *channel_);
  }
  void say(std::size_t lane, std::uint64_t n) {
    ASSERT_EQ(push_number(*lanes_[lane], n), Pushed::accepted);
  }
  std::size_t drained(std::size_t quantum = 256) { return drain(*drainer_, *channel_, quantum); }

  const engine::Ref<engine::Engine> workers_ = resting_workers();
  engine::Ref<engine::ChannelCore> channel_;
  std::unique_ptr<AttachedSubscriber> attached_;
  const std::unique_ptr<engine::Drainer> drainer_ = std::make_unique<engine::Drainer>();
  Lane* lanes_[3] = {};
  Numbers heard_, runs_;
};

TEST_P(MergeTest, EventsOfAllLanesComeInTheOrderInWhichTheyWereSaid) {
  make(0);
  Numbers said;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    say(n * n % 3, n);
    said.push_back(n);
    if (n % 7 == 0) drained();
  }
  while (drained() != 0) {
  }
  EXPECT_EQ(heard_, said);
  EXPECT_EQ(counts_of(*channel_).pending, 0u);
  EXPECT_EQ(channel_->lane_order()->late.get(), 0u);
}

TEST_P(MergeTest, OnePublisherAloneIsHeardInLongRuns) {
  make(0);
  for (std::uint64_t n = 1; n <= 60; ++n) say(1, n);
  EXPECT_EQ(drained(), 60u);
  EXPECT_EQ(runs_, (Numbers{60}));
}

TEST_P(MergeTest, AQuantumEndsARunAndNothingIsLost) {
  make(0);
  for (std::uint64_t n = 1; n <= 20; ++n) say(n % 2, n);
  for (int i = 0; i < 20; i += 5) EXPECT_EQ(drained(5), 5u);
  EXPECT_EQ(heard_.size(), 20u);
  EXPECT_TRUE(std::is_sorted(heard_.begin(), heard_.end()));
}

TEST_P(MergeTest, AYoungerEventWaitsWhileAPublisherIsBusyWithAnOlderOne) {
  make(1'000'000'000'000);
  say(0, 1);
  auto make_two = [this]() noexcept {
    say(1, 3);  // between the claim and the publish of lane 0
    EXPECT_EQ(drained(), 1u);
    EXPECT_EQ(drained(), 0u);
    EXPECT_EQ(heard_, (Numbers{1}));
    return Numbered{2};
  };
  ASSERT_EQ(engine::push<Numbered>(*lanes_[0], make_two), Pushed::accepted);
  EXPECT_EQ(drained(), 2u);
  EXPECT_EQ(heard_, (Numbers{1, 2, 3}));
  EXPECT_EQ(channel_->lane_order()->gaps.get(), 0u);
}

TEST_P(MergeTest, WhatIsYoungerThanTheLookWaitsForTheNextOne) {
  make(1'000'000'000'000, 1);
  say(0, 1);
  say(0, 2);
  // As if others had taken tickets between our look and this publish, on lanes not yet listed.
  lanes_[0]->ordered.tickets.load()->of[1] += 2;
  EXPECT_EQ(drained(), 1u);
  EXPECT_EQ(drained(), 0u);
  EXPECT_EQ(heard_, (Numbers{1}));
  Lane* late = take(64);
  ASSERT_EQ(push_number(*late, 3), Pushed::accepted);
  (void)workers_->take_ticket();  // the one that it borrowed
  ASSERT_EQ(push_number(*late, 4), Pushed::accepted);
  while (drained() != 0) {
  }
  EXPECT_EQ(heard_, (Numbers{1, 3, 2, 4}));
  EXPECT_EQ(channel_->lane_order()->late.get(), 0u);
}

TEST_P(MergeTest, ABusyPublisherIsPassedOverInTimeCountedAndHeardLate) {
  make(0);
  auto make_one = [this]() noexcept {
    say(1, 2);
    EXPECT_EQ(drained(), 0u);  // found busy
    EXPECT_EQ(drained(), 0u);  // still so
    EXPECT_EQ(channel_->lane_order()->gaps.get(), 1u);
    EXPECT_EQ(drained(), 1u);
    say(2, 3);
    EXPECT_EQ(drained(), 1u);  // it is not waited for twice
    return Numbered{1};
  };
  ASSERT_EQ(engine::push<Numbered>(*lanes_[0], make_one), Pushed::accepted);
  EXPECT_EQ(drained(), 1u);
  EXPECT_EQ(heard_, (Numbers{2, 3, 1}));
  EXPECT_EQ(channel_->lane_order()->gaps.get(), 1u);
  EXPECT_EQ(channel_->lane_order()->late.get(), 1u);
  say(0, 4);
  say(1, 5);
  EXPECT_EQ(drained(), 2u);
  EXPECT_EQ(heard_, (Numbers{2, 3, 1, 4, 5}));
}

TEST_P(MergeTest, AClaimThatIsTakenBackHoldsNobodyUp) {
  make(1'000'000'000'000);
  say(1, 1);
  EXPECT_EQ(drained(), 1u);
  const std::uint64_t word = lanes_[0]->word;
  lanes_[0]->word = word + 1;  // what a publisher does that then finds no memory
  (void)workers_->take_ticket();
  say(1, 2);
  EXPECT_EQ(drained(), 0u);
  EXPECT_EQ(engine::undo(*lanes_[0], word, Pushed::no_memory), Pushed::no_memory);
  EXPECT_EQ(drained(), 1u);
  EXPECT_EQ(heard_, (Numbers{1, 2}));
  EXPECT_EQ(channel_->lane_order()->gaps.get(), 0u);
}

TEST_P(MergeTest, ALaneThatComesLaterIsMergedFromItsFirstEvent) {
  make(0);
  std::vector<Lane*> more;
  Numbers said;
  for (std::uint64_t n = 1; n <= 40; ++n) {
    more.push_back(take(8));
    ASSERT_EQ(push_number(*more[n * 7 % more.size()], n), Pushed::accepted);
    said.push_back(n);
    if (n % 6 == 0) drained();
  }
  drained();
  EXPECT_EQ(heard_, said);
}

TEST_P(MergeTest, AllIsHandedOutThoughNobodyListensAnyMore) {
  make(1'000'000'000'000);
  say(0, 1);
  say(1, 2);
  auto make_three = [this]() noexcept {
    attached_.reset();
    EXPECT_EQ(drained(), 2u);
    EXPECT_EQ(drained(), 0u);
    return Numbered{3};
  };
  ASSERT_EQ(engine::push<Numbered>(*lanes_[2], make_three), Pushed::accepted);
  EXPECT_EQ(drained(), 1u);
  EXPECT_EQ(counts_of(*channel_).pending, 0u);
  EXPECT_TRUE(heard_.empty());
}

TEST_P(MergeTest, WhatNobodyHeardMakesNothingLate) {
  make(1'000'000'000'000);
  auto make_one = [this]() noexcept {
    say(1, 2);  // between the claim and the publish of lane 0
    attached_.reset();
    EXPECT_EQ(drained(), 1u);
    return Numbered{1};
  };
  ASSERT_EQ(engine::push<Numbered>(*lanes_[0], make_one), Pushed::accepted);
  const AttachedSubscriber again(*channel_, keep_numbers(heard_));
  say(1, 3);
  while (drained() != 0) {
  }
  EXPECT_EQ(heard_, (Numbers{1, 3}));
  EXPECT_EQ(channel_->lane_order()->late.get(), 0u);
}

TEST_P(MergeTest, ABoundIsKeptAlsoWhileEventsAreHeldBack) {
  make(1'000'000'000'000);
  Lane* small = take(4);
  auto make_last = [&, this]() noexcept {
    for (std::uint64_t n = 1; n <= 4; ++n) EXPECT_EQ(push_number(*small, n), Pushed::accepted);
    EXPECT_EQ(drained(), 0u);  // taken off the queue, and not yet finished
    EXPECT_EQ(push_number(*small, 5), Pushed::full);
    return Numbered{0};
  };
  ASSERT_EQ(engine::push<Numbered>(*lanes_[0], make_last), Pushed::accepted);
  EXPECT_EQ(drained(), 5u);
  EXPECT_EQ(heard_, (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(push_number(*small, 6), Pushed::accepted);
  EXPECT_EQ(drained(), 1u);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, MergeTest,
                         ::testing::Values(engine::LaneKind::moodycamel, engine::LaneKind::ring,
                                           engine::LaneKind::segments),
                         [](const auto& p) { return name_of(p.param); });

TEST(TicketsTest, TheyAreTakenWhileSomebodyWantsThemOnly) {
  const auto workers = resting_workers();
  const auto channel = make_channel(workers);
  Lane& lane = *channel->take_lane({}, *channel);
  Numbers tickets;
  const AttachedSubscriber attached(*channel, [&](const engine::Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) tickets.push_back(engine::ticket_of(run, i));
  });
  const auto drainer = std::make_unique<engine::Drainer>();
  const std::uint64_t first = workers->tickets_taken();
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  ASSERT_TRUE(channel->want_tickets());
  ASSERT_TRUE(channel->want_tickets());
  ASSERT_EQ(push_number(lane, 2), Pushed::accepted);
  channel->unwant_tickets();
  ASSERT_EQ(push_number(lane, 3), Pushed::accepted);
  channel->unwant_tickets();
  ASSERT_EQ(push_number(lane, 4), Pushed::accepted);
  EXPECT_EQ(channel->line.state & ChannelLine::kTicketed, 0u);
  EXPECT_EQ(drain(*drainer, *channel, 256), 4u);
  EXPECT_EQ(tickets, (Numbers{0, first, first + 1, 0}));
}

TEST(TicketsTest, WhatIsLeftFromAnEarlierWishIsNoTicket) {
  const auto workers = resting_workers();
  const auto channel = make_channel(workers);
  engine::LaneOptions options;
  options.capacity = 2;
  Lane& lane = *channel->take_lane(options, *channel);
  Numbers tickets;
  const AttachedSubscriber attached(*channel, [&](const engine::Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) tickets.push_back(engine::ticket_of(run, i));
  });
  const auto drainer = std::make_unique<engine::Drainer>();
  ASSERT_TRUE(channel->want_tickets());
  for (std::uint64_t n = 0; n < 2; ++n) ASSERT_EQ(push_number(lane, n), Pushed::accepted);
  EXPECT_EQ(drain(*drainer, *channel, 256), 2u);
  channel->unwant_tickets();
  ASSERT_EQ(push_number(lane, 2), Pushed::accepted);  // where the first one's ticket still lies
  ASSERT_TRUE(channel->want_tickets());
  ASSERT_EQ(push_number(lane, 3), Pushed::accepted);
  tickets.clear();
  const std::uint64_t next = workers->tickets_taken();
  EXPECT_EQ(drain(*drainer, *channel, 256), 2u);
  EXPECT_EQ(tickets, (Numbers{0, next - 1}));
  channel->unwant_tickets();
}

}  // namespace
}  // namespace ringmain::tests
