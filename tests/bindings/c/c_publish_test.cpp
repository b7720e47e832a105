// Does what C publishes arrive, and is every refusal a code and a sentence?
#include <array>
#include <thread>
#include <vector>

#include "bus/origin.hpp"

#include "tests/bindings/c/c_support.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class CSayTest : public CBusTest {};

ringmain_publisher_options publisher_options() {
  ringmain_publisher_options o{};
  o.bytes = sizeof o;
  return o;
}

TEST_F(CSayTest, NobodyListensIsNoFailure) {
  EXPECT_EQ(ringmain_wanted(ticks_), 0);
  EXPECT_EQ(publish(1), RINGMAIN_UNHEARD);
  Heard heard;
  ringmain_subscription* hearing = subscribe(heard);
  EXPECT_EQ(ringmain_wanted(ticks_), 1);
  expect_ok(publish(1));
  ringmain_subscription_free(hearing);
  EXPECT_EQ(heard.destroyed, 1u);
}

TEST_F(CSayTest, EventsFromSeveralThreadsAllArriveAndEachThreadsInOrder) {
  enum : std::uint64_t { kThreads = 4, kEach = 5000 };
  struct Counts {
    std::array<std::uint64_t, kThreads> last{};
    std::uint64_t count = 0;
    bool disordered = false;
  } counts;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event* event) {
        auto& c = *static_cast<Counts*>(user);
        const auto& tick = *static_cast<const CTick*>(event->event);
        if (tick.n <= c.last[tick.device]) c.disordered = true;
        c.last[tick.device] = tick.n;
        ++c.count;
      },
      &counts, nullptr, nullptr, &hearing));
  std::vector<std::thread> threads;
  for (std::uint32_t who = 0; who < kThreads; ++who) {
    threads.emplace_back([&, who] {
      for (std::uint64_t n = 1; n <= kEach; ++n) {
        const CTick tick{n, who, 0};
        if (ringmain_publish(ticks_, &tick, sizeof tick) != RINGMAIN_OK) return;
      }
    });
  }
  for (auto& t : threads) t.join();
  expect_ok(ringmain_flush(bus_, -1));
  expect_ok(ringmain_unsubscribe(hearing, -1));
  ringmain_subscription_free(hearing);
  EXPECT_EQ(counts.count, kThreads * kEach);
  EXPECT_FALSE(counts.disordered);
  ringmain_channel_stats stats{};
  stats.bytes = sizeof stats;
  expect_ok(ringmain_stats_of_channel(ticks_, &stats));
  EXPECT_EQ(stats.offered, kThreads * kEach);
  EXPECT_EQ(stats.offered, stats.accepted + stats.full + stats.closed + stats.no_memory +
                               stats.too_deep + stats.vetoed);
  EXPECT_EQ(stats.accepted, stats.delivered + stats.evicted + stats.discarded + stats.pending);
}

TEST_F(CSayTest, AnEventOfAnotherSizeIsRefused) {
  Heard heard;
  ringmain_subscription* hearing = subscribe(heard);
  const CTick tick{};
  expect_error(ringmain_publish(ticks_, &tick, 8), RINGMAIN_REFUSED,
               "event_bytes is 8 and 16 were defined; give sizeof the event");
  expect_error(ringmain_publish(ticks_, nullptr, sizeof tick), RINGMAIN_REFUSED, "event is NULL");
  expect_error(ringmain_publish(nullptr, &tick, sizeof tick), RINGMAIN_REFUSED, "channel is NULL");
  EXPECT_EQ(ringmain_wanted(nullptr), 0);
  ringmain_subscription_free(hearing);
  EXPECT_EQ(heard.count, 0u);
}

TEST_F(CSayTest, ThreadsPublishOnLanesAsTheirSourceSays) {
  // The worker stands in its first call meanwhile.
  struct Stuck {
    Door door;
    std::atomic<std::uint64_t> count{0};
  } stuck;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event*) {
        auto& s = *static_cast<Stuck*>(user);
        if (s.count++ == 0) (void)s.door.pass();
      },
      &stuck, nullptr, nullptr, &hearing));
  ringmain_publisher_options options = publisher_options();
  options.capacity_events = 10;
  options.realtime = 1;
  expect_ok(ringmain_set_thread_lanes(ticks_, &options));
  expect_ok(ringmain_set_thread_lanes(ticks_, &options));
  std::thread([&] {
    for (std::uint64_t n = 1; n <= 10; ++n) expect_ok(publish(n));
    expect_error(publish(11), RINGMAIN_FULL, "too many of this publisher's events");
  }).join();
  stuck.door.open();
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_EQ(stuck.count, 10u);
  ringmain_subscription_free(hearing);
}

TEST_F(CSayTest, OtherLanesForThreadsAreAConflictAndWrongOnesAreRefused) {
  ringmain_publisher_options options = publisher_options();
  options.realtime = 1;
  options.overflow = RINGMAIN_BLOCK;
  expect_error(ringmain_set_thread_lanes(ticks_, &options), RINGMAIN_REFUSED,
               "a realtime publisher must never wait");
  options.realtime = 0;
  options.source_time = 1;
  expect_error(ringmain_set_thread_lanes(ticks_, &options), RINGMAIN_REFUSED, "source_time");
  expect_error(ringmain_set_thread_lanes(nullptr, &options), RINGMAIN_REFUSED, "channel is NULL");
  expect_ok(ringmain_set_thread_lanes(ticks_, nullptr));
  options.source_time = 0;
  expect_error(ringmain_set_thread_lanes(ticks_, &options), RINGMAIN_CONFLICT,
               "(65536 events, segments, drop_newest) already, and cannot be (65536 events, "
               "segments, block for 1000000 us)");
}

TEST_F(CSayTest, AFullPublisherSaysSoAndItsLedgerBalances) {
  struct Stuck {
    Door door;
    std::atomic<std::uint64_t> count{0};
  } stuck;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event*) {
        auto& s = *static_cast<Stuck*>(user);
        if (s.count++ == 0) (void)s.door.pass();
      },
      &stuck, nullptr, nullptr, &hearing));
  ringmain_publisher_options options = publisher_options();
  options.capacity_events = 4;
  ringmain_publisher* publisher = nullptr;
  expect_ok(ringmain_publisher_open(ticks_, &options, &publisher));
  const CTick tick{1, 0, 0};
  expect_ok(ringmain_publisher_publish(publisher, &tick, sizeof tick));
  ASSERT_TRUE(stuck.door.await_arrival());
  for (int i = 0; i < 3; ++i) expect_ok(ringmain_publisher_publish(publisher, &tick, sizeof tick));
  expect_error(ringmain_publisher_publish(publisher, &tick, sizeof tick), RINGMAIN_FULL,
               "raise capacity_events");
  ringmain_ledger ledger{};
  ledger.bytes = sizeof ledger;
  expect_ok(ringmain_publisher_ledger(publisher, &ledger));
  EXPECT_EQ(ledger.offered, 5u);
  EXPECT_EQ(ledger.dropped, 1u);
  EXPECT_EQ(ledger.in_flight, 4u);
  expect_error(ringmain_flush(bus_, 0), RINGMAIN_TIMEOUT, "not all was delivered");
  stuck.door.open();
  expect_ok(ringmain_flush(bus_, -1));
  expect_ok(ringmain_publisher_ledger(publisher, &ledger));
  EXPECT_EQ(ledger.delivered, 4u);
  ringmain_publisher_close(publisher);
  ringmain_subscription_free(hearing);
}

TEST_F(CSayTest, ASourcesTimeIsTheEventsTime) {
  struct Stamp {
    std::int64_t time_ns = 0;
    std::uint32_t from = 0;
  } stamp;
  ringmain_subscription* hearing = nullptr;
  expect_ok(ringmain_subscribe(
      ticks_,
      [](void* user, const ringmain_event* event) {
        *static_cast<Stamp*>(user) = {event->time_ns, event->time_from};
      },
      &stamp, nullptr, nullptr, &hearing));
  const CTick tick{};
  ringmain_publisher_options options = publisher_options();
  ringmain_publisher* plain = nullptr;
  expect_ok(ringmain_publisher_open(ticks_, &options, &plain));
  expect_error(ringmain_publisher_publish_at(plain, &tick, sizeof tick, 5), RINGMAIN_REFUSED,
               "source_time to 1");
  options.source_time = 1;
  ringmain_publisher* timed = nullptr;
  expect_ok(ringmain_publisher_open(ticks_, &options, &timed));
  expect_ok(ringmain_publisher_publish_at(timed, &tick, sizeof tick, 12345));
  expect_ok(ringmain_flush(bus_, -1));
  EXPECT_EQ(stamp.time_ns, 12345);
  EXPECT_EQ(stamp.from, std::uint32_t{RINGMAIN_TIME_OF_SOURCE});
  ringmain_publisher_close(plain);
  ringmain_publisher_close(timed);
  ringmain_subscription_free(hearing);
}

TEST_F(CSayTest, APublisherThatCannotBeIsRefused) {
  ringmain_publisher* publisher = nullptr;
  ringmain_publisher_options options = publisher_options();
  options.overflow = 3;
  expect_error(ringmain_publisher_open(ticks_, &options, &publisher), RINGMAIN_REFUSED,
               "overflow is 3");
  options.overflow = RINGMAIN_BLOCK;
  options.realtime = 1;
  expect_error(ringmain_publisher_open(ticks_, &options, &publisher), RINGMAIN_REFUSED,
               "must never wait");
  options.bytes = 3;
  expect_error(ringmain_publisher_open(ticks_, &options, &publisher), RINGMAIN_REFUSED,
               "ringmain_publisher_options.bytes is 3");
  expect_error(ringmain_publisher_open(nullptr, nullptr, &publisher), RINGMAIN_REFUSED, "channel");
  expect_error(ringmain_publisher_open(ticks_, nullptr, nullptr), RINGMAIN_REFUSED, "publisher");
  EXPECT_EQ(publisher, nullptr);
  const CTick tick{};
  ringmain_ledger ledger{};
  expect_error(ringmain_publisher_publish(nullptr, &tick, sizeof tick), RINGMAIN_REFUSED, "NULL");
  expect_error(ringmain_publisher_publish_at(nullptr, &tick, 16, 0), RINGMAIN_REFUSED, "NULL");
  expect_error(ringmain_publisher_ledger(nullptr, &ledger), RINGMAIN_REFUSED, "publisher is NULL");
  expect_ok(ringmain_publisher_open(ticks_, nullptr, &publisher));
  expect_error(ringmain_publisher_ledger(publisher, nullptr), RINGMAIN_REFUSED, "ledger is NULL");
  expect_error(ringmain_publisher_ledger(publisher, &ledger), RINGMAIN_REFUSED,
               "ringmain_ledger.bytes is 0");
  expect_error(ringmain_publisher_publish(publisher, &tick, 3), RINGMAIN_REFUSED, "event_bytes");
  ringmain_publisher_close(publisher);
  ringmain_publisher_close(nullptr);
}

TEST_F(CSayTest, AnOlderCallerGetsAsMuchOfTheFiguresAsItKnows) {
  ringmain_channel_stats stats;
  std::memset(&stats, 0x5a, sizeof stats);
  stats.bytes = 16;  // up to offered
  expect_ok(ringmain_stats_of_channel(ticks_, &stats));
  EXPECT_EQ(stats.bytes, 16u);
  EXPECT_EQ(stats.offered, 0u);
  EXPECT_EQ(stats.accepted, 0x5a5a5a5a5a5a5a5au) << "written past what the caller has";
}

TEST_F(CSayTest, AClosedBusSaysSoAndItsPublishersMayOutliveIt) {
  Heard heard;
  ringmain_subscription* hearing = subscribe(heard);
  ringmain_publisher* publisher = nullptr;
  expect_ok(ringmain_publisher_open(ticks_, nullptr, &publisher));
  const CTick tick{1, 0, 0};
  expect_ok(ringmain_publisher_publish(publisher, &tick, sizeof tick));
  expect_ok(ringmain_close(std::exchange(bus_, nullptr), -1));
  EXPECT_EQ(heard.count, 1u) << "what was accepted is delivered";
  expect_error(ringmain_publisher_publish(publisher, &tick, sizeof tick), RINGMAIN_CLOSED,
               "the bus has stopped");
  ringmain_publisher_close(publisher);
  ringmain_subscription_free(hearing);
  EXPECT_EQ(heard.destroyed, 1u);
}

TEST_F(CSayTest, AStuckCallbackEndsACloseInTimeWithItsName) {
  Door door;
  ringmain_subscription* hearing = nullptr;
  ringmain_subscribe_options options{};
  options.bytes = sizeof options;
  options.name = "the stuck one";
  expect_ok(ringmain_subscribe(
      ticks_, [](void* user, const ringmain_event*) { (void)static_cast<Door*>(user)->pass(); },
      &door, nullptr, &options, &hearing));
  expect_ok(publish(1));
  ASSERT_TRUE(door.await_arrival());
  expect_error(ringmain_close(std::exchange(bus_, nullptr), 1'000'000), RINGMAIN_TIMEOUT,
               "the stuck one");
  door.open();
  EXPECT_NE(ringmain_unsubscribe(hearing, -1), RINGMAIN_TIMEOUT);
  ringmain_subscription_free(hearing);
}

TEST_F(CSayTest, NoOperationsNumberIsGivenTwice) {
  const std::uint64_t first = ringmain_new_op_id();
  EXPECT_NE(first, 0u);
  EXPECT_GT(ringmain_new_op_id(), first);
  EXPECT_NE(new_op_id(), first) << "C++ and C draw from the same numbers";
}

TEST_F(CSayTest, NamesAndTextAreThoseOfCpp) {
  const std::uint32_t name = ringmain_name("all_reduce and more", 10);
  std::size_t bytes = 0;
  EXPECT_EQ(std::string(ringmain_name_text(name, &bytes), 10), "all_reduce");
  EXPECT_EQ(bytes, 10u);
  EXPECT_EQ(ringmain_name("all_reduce", 10), name);
  EXPECT_EQ(ringmain_name(nullptr, 3), 0u);
  EXPECT_STREQ(ringmain_name_text(0, nullptr), "");
  EXPECT_STREQ(ringmain_name_text(~0u, &bytes), "") << "of a number that is no name";
  char field[16];
  expect_error(ringmain_set_text(nullptr, 16, "x", 1), RINGMAIN_REFUSED, "field is NULL");
  expect_error(ringmain_set_text(field, 16, nullptr, 1), RINGMAIN_REFUSED, "text is NULL");
  for (const std::size_t wrong : {0u, 7u, 12u, 1032u}) {
    expect_error(ringmain_set_text(field, wrong, "x", 1), RINGMAIN_REFUSED, "multiple of 8");
  }
  expect_ok(ringmain_set_text(field, 16, nullptr, 0));
  EXPECT_STREQ(ringmain_text(field, 16, &bytes), "");
  std::memset(field, 0xff, sizeof field);
  (void)ringmain_text(field, 16, &bytes);
  EXPECT_EQ(bytes, 14u) << "read past its field";
  EXPECT_STREQ(ringmain_text(nullptr, 16, &bytes), "");
}

TEST(CErrorTest, EveryCodeHasANameAndEachThreadItsOwnSentence) {
  for (ringmain_code code = 0; code < 48; ++code) {
    const std::string name = ringmain_code_name(code);
    const bool known = code <= RINGMAIN_FORKED || (code >= RINGMAIN_REFUSED && code <= 39);
    EXPECT_EQ(name != "unknown", known) << code;
  }
  EXPECT_EQ(ringmain_c_abi(), std::uint32_t{RINGMAIN_C_ABI});
  EXPECT_NE(std::string(ringmain_version()).find('.'), std::string::npos);
  (void)ringmain_publish(nullptr, nullptr, 0);
  EXPECT_STRNE(ringmain_last_error(), "");
  std::thread([] { EXPECT_STREQ(ringmain_last_error(), ""); }).join();
}

TEST(COpenTest, WhatCannotBeOpenedIsRefused) {
  ringmain_bus* bus = nullptr;
  ringmain_bus_options options{};
  expect_error(ringmain_open(&options, &bus), RINGMAIN_REFUSED, "ringmain_bus_options.bytes is 0");
  expect_error(ringmain_open(nullptr, nullptr), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_open_process(nullptr), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_flush(nullptr, -1), RINGMAIN_REFUSED, "bus is NULL");
  expect_ok(ringmain_close(nullptr, -1));
  EXPECT_EQ(bus, nullptr);
}

}  // namespace
}  // namespace ringmain::tests
