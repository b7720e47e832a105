// What becomes of calls that subscribers make, and of a source that a subscriber ends?
#include <atomic>
#include <optional>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::cuda {
namespace {

using tests::eventually;

class SourceCallbacksTest : public SourceFixture {};

TEST_F(SourceCallbacksTest, SubscribersCallsAreSuppressedAndCounted) {
  auto& channel = bus.channel<EventRecord>();
  int heard = 0;
  const auto subscription = channel.subscribe([&](const EventRecord&) {
    if (++heard < 10) (void)cudaEventRecord(event, nullptr);
  });
  Source source = attached(bus);
  record();
  bus.deliver();
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(source.counts(), (Counts{.published = 1, .suppressed = 1}));
}

TEST_F(SourceCallbacksTest, SubscribersCallsAreHeardIfAskedFor) {
  auto& channel = bus.channel<EventRecord>();
  int heard = 0;
  const auto subscription = channel.subscribe([&](const EventRecord&) {
    if (++heard < 10) (void)cudaEventRecord(event, nullptr);
  });
  Source source = attached(bus, {.own = true});
  record();
  bus.deliver();
  EXPECT_EQ(heard, 10);
  EXPECT_EQ(source.counts(), (Counts{.published = 10}));
}

TEST_F(SourceCallbacksTest, OnlyWhatWouldHaveBeenHeardCountsAsSuppressed) {
  const auto subscription = bus.channel<EventRecord>().subscribe([&](const EventRecord&) {
    cudaEvent_t unheard = nullptr;  // told for the generation's sake
    (void)cudaEventCreate(&unheard);
    (void)cudaEventDestroy(unheard);
  });
  Source source = attached(bus);
  record();
  bus.deliver();
  EXPECT_EQ(source.counts(), (Counts{.published = 1}));
}

TEST_F(SourceCallbacksTest, ItMayBeDetachedInsideAWorkersCallback) {
  const auto said = bus.heard<SourceNotice>();
  Source source;
  std::optional<Detached> answer;
  const auto subscription =
      bus.channel<EventRecord>().subscribe([&](const EventRecord&) { answer = source.detach(); });
  source = attached(bus);
  record();
  bus.deliver();
  EXPECT_EQ(answer, Detached::deferred);
  record();
  EXPECT_EQ(bus.queued(), 0);
  EXPECT_EQ(source.detach(), Detached::was_not_attached);  // and does what was left
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(said.back().state, SourceState::detached);
}

TEST_F(SourceCallbacksTest, ItMayBeDetachedInsideACallOfCuda) {
  Bus live;
  std::atomic<int> gone{0};
  const auto said = live.channel<SourceNotice>().subscribe([&](const SourceNotice& notice) {
    if (notice.state == SourceState::detached) ++gone;
  });
  Source source;
  std::optional<Detached> answer;
  const auto subscription = live.channel<EventRecord>().subscribe_inline(
      [&](const EventRecord&) { answer = source.detach(); });
  source = attached(live);
  record();
  EXPECT_EQ(answer, Detached::deferred);
  EXPECT_TRUE(eventually([&] { return gone == 1; })) << "the housekeeper did the rest";
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  Source again = attached(live);
}

TEST_F(SourceCallbacksTest, NothingElseIsDoneInsideACallback) {
  Source source;
  const auto subscription = bus.channel<EventRecord>().subscribe([&](const EventRecord&) {
    EXPECT_FALSE(Source::attach(bus));
    EXPECT_FALSE(source.lend("nobody"));
    EXPECT_FALSE(source.take_back());
    EXPECT_EQ(source.state(), SourceState::attached);
  });
  source = attached(bus);
  record();
  bus.deliver();
}

}  // namespace
}  // namespace ringmain::cuda
