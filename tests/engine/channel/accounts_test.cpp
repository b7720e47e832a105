// Is a fault of a ledger named, and nothing else, also while somebody is between two counts?

#include "engine/channel/accounts.hpp"

#include <gtest/gtest.h>

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::push_number;

class AccountsTest : public ::testing::Test {
 protected:
  AccountsTest() {
    lane_.refused = 5;
    lane_.unqueued.closed = 3;
    lane_.unqueued.vetoed = 2;
  }
  [[nodiscard]] bool offered_add_up() const { return look_at_accounts(*channel_).offered_add_up; }
  [[nodiscard]] bool accepted_add_up() const { return look_at_accounts(*channel_).accepted_add_up; }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = tests::make_channel(workers_);
  const tests::AttachedSubscriber attached_{*channel_, [](const engine::Run&) {}};
  Lane& lane_ = *channel_->take_lane({}, *channel_);
};

TEST_F(AccountsTest, APublisherBetweenARefusalAndItsReasonIsNoFault) {
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.settling = 1;
  lane_.refused = 6;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.closed = 4;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.settling = 0;
  EXPECT_TRUE(offered_add_up());
}

TEST_F(AccountsTest, ARefusalWithoutAReasonIsAFault) {
  lane_.refused = 6;
  EXPECT_FALSE(offered_add_up());
  lane_.unqueued.settling = 1;
  lane_.refused = 7;
  EXPECT_FALSE(offered_add_up()) << "a publisher is between two counts of one event, not of two";
}

TEST_F(AccountsTest, AHandlerMayRefuseInTheMiddleOfARefusal) {
  lane_.unqueued.settling = 2;
  lane_.refused = 7;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.too_deep = 1;
  lane_.unqueued.settling = 1;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.settling = 0;
  EXPECT_FALSE(offered_add_up());
  lane_.unqueued.settling = 2;
  lane_.refused = 9;
  EXPECT_FALSE(offered_add_up()) << "two are between two counts, not three";
}

TEST_F(AccountsTest, AHandlerMayRefuseInTheMiddleOfAnObservation) {
  lane_.word = 1;
  lane_.unqueued.settling = 1;
  lane_.refused = 7;
  EXPECT_TRUE(offered_add_up());
}

TEST_F(AccountsTest, AReasonWithoutARefusalIsAFault) {
  lane_.unqueued.settling = 1;
  lane_.unqueued.closed = 4;
  EXPECT_FALSE(offered_add_up());
}

TEST_F(AccountsTest, AnObserverIsBetweenItsCountsWhileItIsBusy) {
  lane_.word = 1;
  lane_.refused = 6;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.observed = 1;
  lane_.word = 0;
  EXPECT_TRUE(offered_add_up());
  lane_.unqueued.observed = 0;
  EXPECT_FALSE(offered_add_up());
}

TEST_F(AccountsTest, LanesDoNotMakeUpForEachOther) {
  Lane& other = *channel_->take_lane({}, *channel_);
  lane_.refused = 6;
  other.unqueued.full = 1;
  EXPECT_FALSE(offered_add_up());
}

TEST_F(AccountsTest, ARunThatIsBeingHeardIsNoFault) {
  ASSERT_EQ(push_number(lane_, 1), Pushed::accepted);
  EXPECT_TRUE(accepted_add_up());
  channel_->dispatched.add(1, Writers::one);
  EXPECT_TRUE(accepted_add_up());
  lane_.consumed = 1;
  EXPECT_TRUE(accepted_add_up());
}

TEST_F(AccountsTest, AnEventMayBeHeardBeforeItsPublisherHasSaidThatItIsThere) {
  lane_.word = 1;
  channel_->dispatched.add(1, Writers::one);
  EXPECT_TRUE(accepted_add_up());
  lane_.consumed = 1;
  EXPECT_TRUE(accepted_add_up());
  lane_.word = 2;
  EXPECT_TRUE(accepted_add_up());
}

TEST_F(AccountsTest, WhatIsConsumedAndWasNeverDispatchedIsAFault) {
  ASSERT_EQ(push_number(lane_, 1), Pushed::accepted);
  lane_.consumed = 1;
  EXPECT_FALSE(accepted_add_up());
  lane_.undelivered.discarded = 1;
  EXPECT_TRUE(accepted_add_up());
}

TEST_F(AccountsTest, WhatIsDispatchedAndWasNeverPublishedIsAFault) {
  channel_->dispatched.add(1, Writers::one);
  EXPECT_FALSE(accepted_add_up());
}

}  // namespace
}  // namespace ringmain::engine
