// Does C hear what it subscribed to, and is it left alone once unsubscribing returns?
#include <array>
#include <poll.h>
#include <thread>
#include <utility>

#include "tests/bindings/c/c_support.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class CHearTest : public CBusTest {};
class CMailboxTest : public CBusTest {
 protected:
  CMailboxTest() { expect_ok(ringmain_mailbox_open(ticks_, nullptr, &mailbox_)); }
  ~CMailboxTest() override { ringmain_mailbox_close(mailbox_); }
  ringmain_mailbox* mailbox_ = nullptr;
};

TEST_F(CHearTest, AfterUnsubscribingNothingIsCalledAndWhatIsTheUsersIsDestroyed) {
  Heard heard;
  ringmain_subscription* hearing = subscribe(heard);
  for (std::uint64_t n = 1; n <= 100; ++n) expect_ok(publish(n));
  expect_ok(ringmain_flush(bus_, -1));
  ringmain_subscription_stats stats{};
  stats.bytes = sizeof stats;
  expect_ok(ringmain_stats_of_subscription(hearing, &stats));
  EXPECT_EQ(stats.offered, 100u);
  EXPECT_EQ(stats.delivered, 100u);
  expect_ok(ringmain_unsubscribe(hearing, -1));
  EXPECT_EQ(heard.destroyed, 1u);
  expect_error(ringmain_unsubscribe(hearing, -1), RINGMAIN_NOT_ATTACHED, "had ended before");
  EXPECT_EQ(publish(101), RINGMAIN_UNHEARD);
  ringmain_subscription_free(hearing);
  EXPECT_EQ(heard.count, 100u);
  EXPECT_EQ(heard.destroyed, 1u);
  EXPECT_FALSE(heard.disordered);
}

struct Leaver {
  std::atomic<ringmain_subscription*> own{nullptr};
  std::atomic<int> calls{0};
  std::atomic<ringmain_code> code{-1};
  std::atomic<int> destroyed{0};
  static void hear(void* user, const ringmain_event*) {
    auto& self = *static_cast<Leaver*>(user);
    ++self.calls;
    self.code = ringmain_unsubscribe(self.own, -1);
  }
  static void destroy(void* user) { ++static_cast<Leaver*>(user)->destroyed; }
};

TEST_F(CHearTest, OneThatUnsubscribesInItsCallbackIsDeferredAndCalledNoMore) {
  Leaver leaver;
  ringmain_subscription* own = nullptr;
  expect_ok(ringmain_subscribe(ticks_, Leaver::hear, &leaver, Leaver::destroy, nullptr, &own));
  leaver.own = own;
  Heard other;
  ringmain_subscription* hearing = subscribe(other);
  for (std::uint64_t n = 1; n <= 50; ++n) expect_ok(publish(n));
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_EQ(leaver.calls, 1);
  EXPECT_EQ(leaver.code, RINGMAIN_DEFERRED);
  EXPECT_EQ(other.count, 50u);
  const ringmain_code later = ringmain_unsubscribe(own, -1);  // waits outside for what was deferred
  EXPECT_TRUE(later == RINGMAIN_OK || later == RINGMAIN_NOT_ATTACHED) << later;
  EXPECT_EQ(leaver.destroyed, 1);
  ringmain_subscription_free(own);
  ringmain_subscription_free(hearing);
}

TEST_F(CHearTest, OneThatFreesItsHandleInItsCallbackIsCalledNoMore) {
  struct Freer {
    std::atomic<ringmain_subscription*> own{nullptr};
    std::atomic<int> calls{0}, destroyed{0};
  } freer;
  ringmain_subscription* own = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event*) {
        auto& self = *static_cast<Freer*>(user);
        ++self.calls;
        ringmain_subscription_free(self.own.exchange(nullptr));
      },
      &freer, [](void* user) { ++static_cast<Freer*>(user)->destroyed; }, nullptr, &own));
  freer.own = own;
  for (int i = 0; i < 50; ++i) (void)publish(1);
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_EQ(freer.calls, 1);
  EXPECT_TRUE(eventually([&] { return freer.destroyed == 1; }));
}

TEST_F(CHearTest, ARunningCallIsWaitedForAsLongAsIsSaid) {
  Door door;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_, [](void* user, const ringmain_event*) { (void)static_cast<Door*>(user)->pass(); },
      &door, nullptr, nullptr, &hearing));
  expect_ok(publish(1));
  ASSERT_TRUE(door.await_arrival());
  expect_error(ringmain_unsubscribe(hearing, 1000), RINGMAIN_TIMEOUT, "still running");
  door.open();
  expect_ok(ringmain_unsubscribe(hearing, -1));
  ringmain_subscription_free(hearing);
}

TEST_F(CHearTest, InsideACallbackNothingThatWaitsIsDone) {
  struct Inside {
    ringmain_bus* bus;
    std::atomic<ringmain_code> flush{-1}, close{-1};
  } inside{bus_};
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event*) {
        auto& self = *static_cast<Inside*>(user);
        self.flush = ringmain_flush(self.bus, -1);
        self.close = ringmain_close(self.bus, -1);
      },
      &inside, nullptr, nullptr, &hearing));
  expect_ok(publish(1));
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_EQ(inside.flush, RINGMAIN_WOULD_DEADLOCK);
  EXPECT_EQ(inside.close, RINGMAIN_WOULD_DEADLOCK);
  ringmain_subscription_free(hearing);
}

TEST_F(CHearTest, AnInlineSubscriberMayVetoAndThePublisherIsToldWhy) {
  struct Budget {
    std::uint32_t why = ringmain_name("over budget", 11);
    int destroyed = 0;
  } budget;
  ringmain_subscription* judging = nullptr;
  expect_ok(ringmain_subscribe_inline(
      ticks_,
      [](void* user, const ringmain_event* event) -> std::uint32_t {
        const auto& tick = *static_cast<const CTick*>(event->event);
        return tick.n > 10 ? static_cast<Budget*>(user)->why : 0;
      },
      &budget, [](void* user) { ++static_cast<Budget*>(user)->destroyed; }, nullptr, &judging));
  expect_ok(publish(10));
  expect_error(publish(11), RINGMAIN_VETOED, "over budget");
  expect_ok(ringmain_unsubscribe(judging, -1));
  EXPECT_EQ(budget.destroyed, 1);
  ringmain_subscription_free(judging);
}

TEST_F(CHearTest, APatternHearsChannelsThatComeLaterAndReadsTheirFields) {
  struct Found {
    std::atomic<int> count{0};
    std::string channel, field;
    std::uint32_t bytes = 0, past = 0;
  } found;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe_pattern(
      bus_, "late.*",
      [](void* user, const ringmain_event* event) {
        auto& self = *static_cast<Found*>(user);
        ringmain_field field{};
        if (ringmain_event_field(event, 1, &field) == RINGMAIN_OK) self.field = field.name;
        self.past = static_cast<std::uint32_t>(ringmain_event_field(event, 3, &field));
        self.channel = event->channel;
        self.bytes = event->event_bytes;
        ++self.count;
      },
      &found, nullptr, nullptr, &hearing));
  ringmain_channel* late = nullptr;
  const auto type = tick_type("late.tick");
  expect_ok(ringmain_define(bus_, &type, &late));
  const CTick tick{1, 2, 0};
  expect_ok(ringmain_publish(late, &tick, sizeof tick));
  expect_ok(ringmain_flush(bus_, -1));
  ringmain_subscription_free(hearing);
  EXPECT_EQ(found.count, 1);
  EXPECT_EQ(found.channel, "late.tick");
  EXPECT_EQ(found.field, "device");
  EXPECT_EQ(found.past, std::uint32_t{RINGMAIN_NOT_FOUND});
  EXPECT_EQ(found.bytes, sizeof(CTick));
}

TEST_F(CHearTest, WhatCannotSubscribeIsRefusedAndItsUserDestroyed) {
  Heard heard;
  ringmain_subscription* to = nullptr;
  ringmain_subscribe_options options{};
  options.bytes = sizeof options;
  int failures = 0;
  const auto refused = [&](ringmain_code code, const char* part) {
    expect_error(code, RINGMAIN_REFUSED, part);
    EXPECT_EQ(heard.destroyed, static_cast<std::uint64_t>(++failures));
    EXPECT_EQ(to, nullptr);
  };
  const auto by = [&](ringmain_channel* channel, ringmain_hear_fn hear,
                      ringmain_subscription** at) {
    return ringmain_subscribe(channel, hear, &heard, Heard::destroy, &options, at);
  };
  refused(by(nullptr, Heard::hear, &to), "channel is NULL");
  refused(by(ticks_, nullptr, &to), "hear is NULL");
  refused(by(ticks_, Heard::hear, nullptr), "subscription is NULL");
  options.served = 3;
  refused(by(ticks_, Heard::hear, &to), "served is 3");
  options.served = RINGMAIN_ISOLATED;
  options.overflow = RINGMAIN_BLOCK;
  refused(by(ticks_, Heard::hear, &to), "");
  options.overflow = 9;
  refused(by(ticks_, Heard::hear, &to), "overflow is 9");
  options.bytes = 1;
  refused(by(ticks_, Heard::hear, &to), "ringmain_subscribe_options.bytes is 1");
  const auto pattern = [&](ringmain_bus* bus, const char* which, ringmain_hear_fn hear) {
    return ringmain_subscribe_pattern(bus, which, hear, &heard, Heard::destroy, nullptr, &to);
  };
  refused(pattern(nullptr, ">", Heard::hear), "bus is NULL");
  refused(pattern(bus_, nullptr, Heard::hear), "pattern is NULL");
  refused(pattern(bus_, "", Heard::hear), "or empty");
  refused(pattern(bus_, ">", nullptr), "hear is NULL");
  const auto judged = [&](ringmain_channel* channel, ringmain_judge_fn judge) {
    return ringmain_subscribe_inline(channel, judge, &heard, Heard::destroy, nullptr, &to);
  };
  refused(judged(ticks_, nullptr), "judge is NULL");
  refused(judged(nullptr, [](void*, const ringmain_event*) { return 0u; }), "channel is NULL");
  ringmain_subscription_stats stats{};
  expect_error(ringmain_stats_of_subscription(nullptr, &stats), RINGMAIN_REFUSED, "subscription");
  expect_error(ringmain_unsubscribe(nullptr, -1), RINGMAIN_NOT_ATTACHED, "subscription is NULL");
  ringmain_subscription_free(nullptr);
  EXPECT_EQ(publish(1), RINGMAIN_UNHEARD) << "one of them is attached";
}

TEST_F(CMailboxTest, ItsOwnerTakesEventsOneByOneWithTheirStamps) {
  CTick tick{};
  ringmain_event heard{};
  heard.bytes = sizeof heard;
  expect_error(ringmain_mailbox_take(mailbox_, &tick, sizeof tick, &heard), RINGMAIN_EMPTY, "");
  expect_error(ringmain_mailbox_wait(mailbox_, 0), RINGMAIN_TIMEOUT, "no event came");
  for (std::uint64_t n = 1; n <= 3; ++n) expect_ok(publish(n));
  for (std::uint64_t n = 1; n <= 3; ++n) {
    expect_ok(ringmain_mailbox_wait(mailbox_, 60'000'000'000));
    expect_ok(ringmain_mailbox_take(mailbox_, &tick, sizeof tick, &heard));
    EXPECT_EQ(tick.n, n);
    EXPECT_EQ(heard.sequence, n);
    EXPECT_EQ(heard.event, &tick);
    EXPECT_STREQ(heard.channel, "c.tick");
    EXPECT_GT(heard.time_ns, 0);
  }
  expect_error(ringmain_mailbox_take(mailbox_, &tick, sizeof tick, nullptr), RINGMAIN_EMPTY, "");
}

TEST_F(CMailboxTest, ItPollsReadableAndIsDrained) {
  const int fd = ringmain_mailbox_fd(mailbox_);
  ASSERT_GE(fd, 0);
  for (std::uint64_t n = 1; n <= 5; ++n) expect_ok(publish(n));
  pollfd poll{fd, POLLIN, 0};
  ASSERT_EQ(::poll(&poll, 1, 60'000), 1);
  expect_ok(ringmain_flush(bus_, -1));
  Heard heard;
  std::size_t taken = 0;
  expect_ok(ringmain_mailbox_drain(mailbox_, Heard::hear, &heard, 2, &taken));
  EXPECT_EQ(taken, 2u);
  expect_ok(ringmain_mailbox_drain(mailbox_, Heard::hear, &heard, 100, &taken));
  EXPECT_EQ(taken, 3u);
  EXPECT_EQ(heard.count, 5u);
  ringmain_subscription_stats stats{};
  stats.bytes = sizeof stats;
  expect_ok(ringmain_stats_of_mailbox(mailbox_, &stats));
  EXPECT_EQ(stats.offered, 5u);
  EXPECT_EQ(stats.delivered, 5u);
}

/// Counts its calls, and in how many of them the thread knew where it is.
struct Asked {
  std::atomic<int> calls{0}, inside{0};
  static void hear(void* user, const ringmain_event*) {
    auto& self = *static_cast<Asked*>(user);
    self.inside += ringmain_in_subscriber();
    ++self.calls;
  }
  static std::uint32_t judge(void* user, const ringmain_event* event) {
    hear(user, event);
    return 0;
  }
};

TEST_F(CMailboxTest, AThreadKnowsThatItIsInASubscriber) {
  Asked asked;
  std::array<ringmain_subscription*, 5> all{};
  ringmain_subscribe_options options{};
  options.bytes = sizeof options;
  for (std::uint32_t served = RINGMAIN_SHARED; served <= RINGMAIN_OWN_THREAD; ++served) {
    options.served = served;
    expect_ok(ringmain_subscribe(ticks_, Asked::hear, &asked, nullptr, &options, &all[served]));
  }
  expect_ok(ringmain_subscribe_inline(ticks_, Asked::judge, &asked, nullptr, nullptr, &all[3]));
  expect_ok(
      ringmain_subscribe_pattern(bus_, "c.*", Asked::hear, &asked, nullptr, nullptr, &all[4]));
  expect_ok(publish(1));
  EXPECT_EQ(ringmain_in_subscriber(), 0);
  expect_ok(ringmain_flush(bus_, -1));
  expect_ok(ringmain_mailbox_drain(mailbox_, Asked::hear, &asked, 1, nullptr));
  EXPECT_EQ(asked.calls, 6);
  EXPECT_EQ(asked.inside, 6);
  EXPECT_EQ(ringmain_in_subscriber(), 0);
  for (ringmain_subscription* one : all) ringmain_subscription_free(one);
}

TEST_F(CMailboxTest, ItMayBeClosedWhileItIsDrained) {
  for (std::uint64_t n = 1; n <= 5; ++n) expect_ok(publish(n));
  expect_ok(ringmain_flush(bus_, -1));
  std::size_t taken = 0;
  expect_ok(ringmain_mailbox_drain(
      mailbox_,
      [](void* user, const ringmain_event*) {
        ringmain_mailbox_close(std::exchange(*static_cast<ringmain_mailbox**>(user), nullptr));
      },
      &mailbox_, 100, &taken));
  EXPECT_EQ(taken, 1u);
  EXPECT_EQ(mailbox_, nullptr);
}

TEST_F(CMailboxTest, APlaceThatIsTooSmallIsRefusedAndNothingIsLost) {
  expect_ok(publish(1));
  CTick tick{};
  expect_error(ringmain_mailbox_take(mailbox_, &tick, 8, nullptr), RINGMAIN_REFUSED,
               "event_bytes is 8 and an event of this mailbox may have 16");
  ringmain_event heard{};
  expect_error(ringmain_mailbox_take(mailbox_, &tick, sizeof tick, &heard), RINGMAIN_REFUSED,
               "ringmain_event.bytes is 0");
  expect_ok(ringmain_mailbox_wait(mailbox_, -1));
  expect_ok(ringmain_mailbox_take(mailbox_, &tick, sizeof tick, nullptr));
  EXPECT_EQ(tick.n, 1u);
  ringmain_mailbox* all = nullptr;
  expect_ok(ringmain_mailbox_open_pattern(bus_, "c.>", nullptr, &all));
  expect_ok(publish(2));
  expect_error(ringmain_mailbox_take(all, &tick, sizeof tick, nullptr), RINGMAIN_REFUSED, "1024");
  expect_ok(ringmain_mailbox_wait(all, -1));
  std::array<std::byte, RINGMAIN_EVENT_BYTES_MAX> any{};
  heard.bytes = sizeof heard;
  expect_ok(ringmain_mailbox_take(all, any.data(), any.size(), &heard));
  EXPECT_EQ(heard.event_bytes, sizeof tick);
  ringmain_mailbox_close(all);
}

TEST_F(CMailboxTest, NullIsRefused) {
  CTick tick{};
  ringmain_mailbox* to = nullptr;
  ringmain_subscription_stats stats{};
  expect_error(ringmain_mailbox_open(nullptr, nullptr, &to), RINGMAIN_REFUSED, "channel is NULL");
  expect_error(ringmain_mailbox_open(ticks_, nullptr, nullptr), RINGMAIN_REFUSED,
               "mailbox is NULL");
  expect_error(ringmain_mailbox_open_pattern(nullptr, ">", nullptr, &to), RINGMAIN_REFUSED, "bus");
  expect_error(ringmain_mailbox_open_pattern(bus_, "", nullptr, &to), RINGMAIN_REFUSED, "pattern");
  expect_error(ringmain_mailbox_take(nullptr, &tick, 16, nullptr), RINGMAIN_REFUSED, "mailbox");
  expect_error(ringmain_mailbox_take(mailbox_, nullptr, 16, nullptr), RINGMAIN_REFUSED, "event is");
  expect_error(ringmain_mailbox_drain(nullptr, Heard::hear, nullptr, 1, nullptr), RINGMAIN_REFUSED,
               "mailbox is NULL");
  expect_error(ringmain_mailbox_drain(mailbox_, nullptr, nullptr, 1, nullptr), RINGMAIN_REFUSED,
               "hear is NULL");
  expect_error(ringmain_mailbox_wait(nullptr, 0), RINGMAIN_REFUSED, "mailbox is NULL");
  EXPECT_EQ(ringmain_mailbox_fd(nullptr), -1);
  expect_error(ringmain_stats_of_mailbox(nullptr, &stats), RINGMAIN_REFUSED, "mailbox is NULL");
  expect_error(ringmain_stats_of_mailbox(mailbox_, nullptr), RINGMAIN_REFUSED, "stats is NULL");
  expect_error(ringmain_stats_of_channel(nullptr, nullptr), RINGMAIN_REFUSED, "channel is NULL");
  ringmain_mailbox_close(nullptr);
}

}  // namespace
}  // namespace ringmain::tests
