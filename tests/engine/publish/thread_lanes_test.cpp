// Does a thread find its lane in each of many channels, and let go of those that have ended?
#include "engine/publish/thread_lanes.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::make_channel;
using tests::push_number;

class ThreadLanesTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  Ref<Engine> workers_ = tests::resting_workers();
};

TEST_P(ThreadLanesTest, AThreadFindsItsLaneInEachOfManyChannels) {
  std::vector<Ref<ChannelCore>> channels;
  std::vector<Lane*> lanes;
  ChannelCoreOptions o;
  o.lanes = GetParam();
  for (int i = 0; i < 200; ++i) {
    channels.push_back(make_channel(workers_, o));
    lanes.push_back(thread_lane(*channels.back()));
    ASSERT_NE(lanes.back(), nullptr);
  }
  for (std::size_t i = 0; i < channels.size(); ++i) EXPECT_EQ(thread_lane(*channels[i]), lanes[i]);
  for (const auto& c : channels) EXPECT_EQ(c->lane_count(), 1u);
}

TEST_P(ThreadLanesTest, AThreadKeepsFewOfTheChannelsThatAreClosed) {
  // A thread may outlive thousands of buses: their memory must not wait for the thread's end.
  std::vector<Subscriber*> watched;
  std::thread([&] {
    for (int i = 0; i < 2000; ++i) {
      const auto channel = make_channel(workers_);
      Subscriber* s = tests::make_test_subscriber([](const engine::Run&) {});
      s->holders.fetch_add(1);
      watched.push_back(s);
      ASSERT_TRUE(channel->attach(s));
      ASSERT_EQ(push_number(*thread_lane(*channel), 1), Pushed::accepted);
      channel->close_line();
    }
    const auto alive = std::count_if(watched.begin(), watched.end(),
                                     [](const Subscriber* s) { return s->holders.load() == 2; });
    EXPECT_LE(alive, 16);
  }).join();
  for (Subscriber* s : watched) {
    EXPECT_EQ(s->holders.load(), 1u);
    drop_subscriber(s);
  }
}

/// Where the last copy goes, `act` is called.
class AtItsEnd {
 public:
  explicit AtItsEnd(std::function<void()> act) : acts_(std::make_shared<Acts>()) {
    acts_->act = std::move(act);
  }
  void operator()(const engine::Run&) const {}

 private:
  struct Acts {
    std::function<void()> act;
    ~Acts() { act(); }
  };
  std::shared_ptr<Acts> acts_;
};

// A thread may be the last to hold a bus that has ended, and destroys captures then.
TEST_P(ThreadLanesTest, ALaneThatIsLookedForStaysItsThreadsWhateverCapturesDoMeanwhile) {
  ChannelCoreOptions o;
  o.lanes = GetParam();
  const Ref<ChannelCore> wanted = make_channel(workers_, o), shows = make_channel(workers_, o);
  std::vector<Ref<ChannelCore>> before, meanwhile;
  for (int i = 0; i < 7; ++i) before.push_back(make_channel(workers_, o));
  for (int i = 0; i < 64; ++i) meanwhile.push_back(make_channel(workers_, o));
  int ended = 0;
  std::thread([&] {
    {
      const Ref<Engine> over = tests::resting_workers();
      const Ref<ChannelCore> last = make_channel(over, o);
      ASSERT_NE(thread_lane(*last), nullptr);
      last->close_line();
      Subscriber* const s = tests::make_test_subscriber(AtItsEnd([&] {
        ++ended;
        wanted->close_line();
        for (const auto& c : meanwhile) EXPECT_NE(thread_lane(*c), nullptr);  // its table grows
      }));
      s->shown_by = shows.get();
      EXPECT_TRUE(over->retire_list().retire(*s));
      drop_subscriber(s);
    }
    for (const auto& c : before) ASSERT_NE(thread_lane(*c), nullptr);
    Lane* const lane = thread_lane(*wanted);
    ASSERT_NE(lane, nullptr);
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(lane->tenure.live.load(), 1u);
    EXPECT_EQ(thread_lane(*wanted), lane);
    Lane* const others = wanted->take_lane(lane->options, *wanted);
    EXPECT_NE(others, lane);
    if (others != nullptr) ChannelCore::give_lane(*others);
  }).join();
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ThreadLanesTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) { return tests::name_of(p.param); });

}  // namespace
}  // namespace ringmain::engine
