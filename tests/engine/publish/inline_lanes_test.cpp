// Inline subscribers of a real channel: where are their calls shown and counted, and what keeps the
// channel?
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/publish/push.hpp"
#include "engine/subscribe/shown.hpp"

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

class InlineLanesTest : public ::testing::Test {
 protected:
  /// Counts its calls; holds one reference for the test.
  Subscriber* listen() {
    Subscriber* s = make_subscriber(sizeof(std::atomic<int>*));
    ::new (s->captures()) std::atomic<int>*(&calls_);
    s->judge = [](Subscriber& self, const std::byte*) noexcept {
      ++**static_cast<std::atomic<int>**>(self.captures());
      return Judgement{};
    };
    s->destroy = [](Subscriber&) noexcept {};
    s->holders.fetch_add(1);
    EXPECT_TRUE(channel_->attach(s));
    return s;
  }
  void let_go(Subscriber* s) {
    s->gate.close();
    channel_->unlist(s);
    if (close_deferred(*s)) destroy_captures(*s);
    drop_subscriber(s);
  }
  Lane& lane() {
    LaneOptions options;
    options.capacity = 16;
    options.kind = LaneKind::ring;
    Lane* const made = channel_->take_lane(options, *channel_);
    EXPECT_NE(made, nullptr);
    return *made;
  }

  const Ref<Engine> workers_ = tests::resting_workers();
  const Ref<ChannelCore> channel_ = tests::make_channel(workers_);
  std::atomic<int> calls_{0};
};

TEST_F(InlineLanesTest, EachLaneHasACellWhetherItOrTheSubscriberCameFirst) {
  Lane& before = lane();
  Subscriber* const s = listen();
  EXPECT_NE(s->cells.of(ChunkPlace::of(before.index)), nullptr);
  for (int i = 0; i < 4; ++i) {
    Lane& after = lane();
    ASSERT_NE(s->cells.of(ChunkPlace::of(after.index)), nullptr) << "lane " << after.index;
    EXPECT_EQ(tests::push_number(after, 1), Pushed::accepted);
    EXPECT_EQ(s->cells.of(ChunkPlace::of(after.index))->delivered.load(), 1u);
  }
  EXPECT_EQ(tests::push_number(before, 1), Pushed::accepted);
  EXPECT_EQ(s->calls().offered, 5u);
  EXPECT_EQ(s->calls().delivered, 5u);
  EXPECT_EQ(s->offered.get(), 0u);
  EXPECT_EQ(calls_, 5);
  let_go(s);
}

TEST_F(InlineLanesTest, ACallOnAnyLaneAndLevelIsFound) {
  Subscriber* const s = listen();
  Subscriber* const other = listen();
  for (int i = 0; i < 6; ++i) (void)lane();
  EXPECT_FALSE(channel_->calling(*s));
  for (std::uint32_t i = 0; i < channel_->lane_count(); ++i) {
    for (Shown& level : channel_->lane(i).inlined.shown) {
      level.store(s);
      EXPECT_TRUE(channel_->calling(*s));
      EXPECT_FALSE(channel_->calling(*other));
      level.store(nullptr);
    }
  }
  let_go(other);
  let_go(s);
}

TEST_F(InlineLanesTest, InAForkedChildNobodyClaimsCaptures) {
  Subscriber* const s = listen();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(channel_->calling(*s) && !close_deferred(*s) ? 0 : 1);
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_FALSE(channel_->calling(*s));
  let_go(s);
}

TEST_F(InlineLanesTest, OneThatIsRetiredKeepsItsChannelUntilItIsReclaimed) {
  auto channel = tests::make_channel(workers_);
  std::atomic<bool> destroyed{false};
  Subscriber* const s = make_subscriber(sizeof(std::atomic<bool>*));
  ::new (s->captures()) std::atomic<bool>*(&destroyed);
  s->judge = [](Subscriber&, const std::byte*) noexcept { return Judgement{}; };
  s->destroy = [](Subscriber& self) noexcept {
    **static_cast<std::atomic<bool>**>(self.captures()) = true;
  };
  ASSERT_TRUE(channel->attach(s));
  s->holders.fetch_add(1);
  s->gate.close();
  channel->unlist(s);
  Shown* word = nullptr;
  {
    LaneOptions options;
    options.capacity = 16;
    options.kind = LaneKind::ring;
    word = &channel->take_lane(options, *channel)->inlined.shown[0];
  }
  word->store(s);
  EXPECT_FALSE(close_deferred(*s));
  word->store(nullptr);
  ASSERT_TRUE(s->gate.leave_shown(true));
  ASSERT_TRUE(workers_->retire_list().retire(*s));
  channel = Ref<ChannelCore>();
  EXPECT_FALSE(destroyed);
  workers_->retire_list().reclaim_all();
  EXPECT_TRUE(destroyed);
  drop_subscriber(s);
}

TEST(CallCellsTest, TheyAreMadeForAsManyLanesAsThereAreAndStayWhereTheyAre) {
  CallCells cells;
  EXPECT_EQ(cells.of(ChunkPlace::of(0)), nullptr);
  cells.make(1);
  CallCells::Cell* const first = cells.of(ChunkPlace::of(0));
  ASSERT_NE(first, nullptr);
  EXPECT_NE(cells.of(ChunkPlace::of(3)), nullptr);  // chunks of 4, 8, 16 …
  EXPECT_EQ(cells.of(ChunkPlace::of(4)), nullptr);
  count_one(first->offered);
  cells.make(13);
  EXPECT_EQ(cells.of(ChunkPlace::of(0)), first);
  ASSERT_NE(cells.of(ChunkPlace::of(27)), nullptr);
  EXPECT_EQ(cells.of(ChunkPlace::of(28)), nullptr);
  count_one(cells.of(ChunkPlace::of(27))->offered);
  count_one(cells.of(ChunkPlace::of(27))->delivered);
  EXPECT_EQ(cells.sums().offered, 2u);
  EXPECT_EQ(cells.sums().delivered, 1u);
}

}  // namespace
}  // namespace ringmain::engine
