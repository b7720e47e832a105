// What if a signal handler publishes in the middle of its own thread's publish? The processor stops
// after each instruction of a publish, one after another, and a handler publishes there. Where it
// cannot be made to stop, signals come from another thread.
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/system/open_table.hpp"
#include "engine/system/presence.hpp"

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/process/sanitized.hpp"
#include "tests/process/stopped.hpp"

namespace ringmain::tests {
namespace {

struct Way {
  const char* name;
  PublisherOptions options;
  bool own_lane = true;  // else the thread's
  bool stamped = false;  // publishers look at the clock: the path that is not inlined
  bool inlined = false;  // and one that is called in the publishing thread
  bool at_once = false;  // publish_all()
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

PublisherOptions of(LaneKind lane, Overflow overflow = Overflow::drop_newest,
                    std::uint32_t capacity = 4096) {
  PublisherOptions options;
  options.lane = lane;
  options.overflow = overflow;
  options.capacity_events = capacity;
  options.block_us_max = microseconds(0);
  return options;
}

class HandlerStepTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!stops_after_each_instruction())
      GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  }
  void keep(PublishCode code, std::uint64_t n) {
    ++codes_[code];
    if (code == PublishCode::accepted) ++accepted_[n];
  }

 public:
  PublishCode publish(Publisher<Tick>& own, std::uint64_t n) {
    ++offered_;
    if (GetParam().at_once) {
      const Tick tick{n};
      const BatchResult all = own.publish_all({&tick, 1});
      return all.accepted == 1 ? PublishCode::accepted : all.last;
    }
    return (GetParam().own_lane ? own.publish({n}) : ticks_.publish({n})).code;
  }

 protected:
  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
  std::uint64_t offered_ = 0;
  std::map<PublishCode, int> codes_;
  std::map<std::uint64_t, int> accepted_, heard_;
};

TEST_P(HandlerStepTest, WhereverItPublishesNothingIsLostHeardTwiceOrCountedWrong) {
  const Way& way = GetParam();
  const auto hear = [this](const Tick& t) { ++heard_[t.n]; };
  const Subscription sub = way.stamped
                               ? ticks_.subscribe([hear](const Tick& t, const Stamp&) { hear(t); })
                               : ticks_.subscribe(hear);
  const Subscription inlined =
      way.inlined ? ticks_.subscribe_inline([](const Tick&) {}) : Subscription();
  auto own = std::move(ticks_.publisher(way.options)).value();
  keep(publish(own, 0), 0);  // warm: its memory is there
  struct Nested {
    HandlerStepTest* test;
    Publisher<Tick>* own;
    std::uint64_t n;
    PublishCode code;
  } nested{this, &own, 0, PublishCode::accepted};
  const auto act = [](void* with) {
    auto& n = *static_cast<Nested*>(with);
    n.code = n.test->publish(*n.own, n.n);
  };
  // Each instruction of what is inlined; of the long ways some.
  const long stride = is_sanitized() ? 401 : way.stamped || way.inlined || !way.own_lane ? 3 : 1;
  const unsigned rounds_per_flush = way.options.capacity_events > 16 ? 64 : 8;  // full for some
  std::uint64_t n = 0;
  unsigned round = 0;
  bool reached = true;
  for (long at = 1; reached; at += stride) {
    PublishCode outer = PublishCode::accepted;
    nested.n = ++n;
    const std::uint64_t mine = ++n;
    {
      Stopped stopped(at, act, &nested);
      reached = stopped.run([&] { outer = publish(own, mine); });
    }
    keep(outer, mine);
    if (reached) keep(nested.code, nested.n);
    if (++round % rounds_per_flush != 0) continue;
    ASSERT_TRUE(bus_.flush(kLong));
  }
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_GT(n, 10u);
  EXPECT_GT(codes_[PublishCode::accepted], 0);
  for (const auto& [code, times] : codes_) {
    EXPECT_TRUE(code == PublishCode::accepted || code == PublishCode::too_deep ||
                (code == PublishCode::full && way.options.capacity_events < 16))
        << to_string(code) << ", " << times << " times";
  }
  EXPECT_GT(codes_[PublishCode::too_deep], 0) << "no handler came in the middle";
  if (way.options.overflow != Overflow::drop_oldest) {
    EXPECT_EQ(heard_, accepted_);
  }
  for (const auto& [event, times] : heard_) EXPECT_EQ(times, accepted_[event]) << event;
  const ChannelStats s = ticks_.stats();
  EXPECT_EQ(s.offered, offered_);
  EXPECT_EQ(s.accepted, s.delivered + s.evicted);
  EXPECT_EQ(s.too_deep, static_cast<std::uint64_t>(codes_[PublishCode::too_deep]));
  EXPECT_EQ(s.full, static_cast<std::uint64_t>(codes_[PublishCode::full]));
  EXPECT_TRUE(bus_.verify_accounting());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, HandlerStepTest,
    ::testing::Values(Way{"moodycamel", of(LaneKind::moodycamel)},
                      Way{"segments", of(LaneKind::segments)}, Way{"ring", of(LaneKind::ring)},
                      Way{"threads_lane", of(LaneKind::segments), false},
                      Way{"stamped", of(LaneKind::ring), true, true},
                      Way{"inlined", of(LaneKind::ring), true, false, true},
                      Way{"batch", of(LaneKind::segments), true, false, false, true},
                      Way{"batch_moodycamel", of(LaneKind::moodycamel), true, false, false, true},
                      Way{"full", of(LaneKind::ring, Overflow::drop_newest, 3)},
                      Way{"full_moodycamel", of(LaneKind::moodycamel, Overflow::drop_newest, 3)},
                      Way{"oldest", of(LaneKind::ring, Overflow::drop_oldest, 3)},
                      Way{"full_that_waits", of(LaneKind::ring, Overflow::block, 3)}),
    [](const auto& p) { return std::string(p.param.name); });

/// A thread publishes on two channels by turns; its handler on the one that it is not publishing
/// on. At first it has no lanes yet.
TEST(HandlerTest, ItMayPublishOnTheThreadsOtherLane) {
  if (!stops_after_each_instruction()) GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  std::map<std::uint64_t, int> ticks_heard, tocks_heard, ticks_said, tocks_said;
  const auto hear_tick = ticks.subscribe([&](const Tick& t) { ++ticks_heard[t.n]; });
  const auto hear_tock = tocks.subscribe([&](const Tock& t) {
    if (t.device == 7 && t.value == 8) ++tocks_heard[t.n];
  });
  struct Other {
    Channel<Tock>& tocks;
    std::uint64_t n;
    PublishCode code;
  } other{tocks, 0, PublishCode::accepted};
  const auto act = [](void* with) {
    auto& o = *static_cast<Other*>(with);
    o.code = o.tocks.publish({7, 8, o.n}).code;
  };
  std::uint64_t n = 0, refused = 0;
  const auto say_ticks_stopped_at = [&](long at) {
    other.n = ++n;
    const std::uint64_t mine = ++n;
    PublishCode code = PublishCode::closed;
    Stopped stopped(at, act, &other);
    const bool reached = stopped.run([&] { code = ticks.publish({mine}).code; });
    if (code == PublishCode::accepted) ++ticks_said[mine];
    refused += code == PublishCode::too_deep ? 1 : 0;
    if (!reached) return false;
    if (other.code == PublishCode::accepted) ++tocks_said[other.n];
    refused += other.code == PublishCode::too_deep ? 1 : 0;
    return true;
  };
  // The lane is taken, in a thread that has none. A sanitizer's allocator goes a long way.
  bool reached = !is_sanitized();
  for (long at = 1; reached; at += 199)
    std::thread([&] { reached = say_ticks_stopped_at(at); }).join();
  EXPECT_TRUE(is_sanitized() || refused > 0) << "no handler came while a lane was taken";
  // It is looked up, after one of the other channel.
  reached = static_cast<bool>(ticks.publish({++n}));
  ++ticks_said[n];
  for (long at = 1; reached; at += is_sanitized() ? 401 : 1) {
    if (tocks.publish({7, 8, ++n})) ++tocks_said[n];
    reached = say_ticks_stopped_at(at);
    if (at % 64 != 0) continue;
    ASSERT_TRUE(bus.flush(kLong));
  }
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(ticks_heard, ticks_said);
  EXPECT_EQ(tocks_heard, tocks_said);
  EXPECT_EQ(ticks.stats().too_deep + tocks.stats().too_deep, refused);
  EXPECT_TRUE(bus.verify_accounting());
}

/// A thread that has its lanes looks for one in its table, and its handler publishes on another
/// one, for which it would look there, too.
TEST(HandlerTest, ItIsRefusedWhileItsThreadLooksForALane) {
  if (!stops_after_each_instruction() || is_sanitized())
    GTEST_SKIP() << "on x86-64 and without sanitizers, which make the way too long, only";
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>("first");
  auto& tocks = bus.channel<Tick>("second");
  const auto hear = [](const Tick&) {};
  const auto first = ticks.subscribe(hear), second = tocks.subscribe(hear);
  std::vector<Channel<Tick>*> others;  // eight times as many as a thread remembers lanes
  std::vector<Subscription> heard;
  for (int i = 0; i < 128; ++i) {
    others.push_back(&bus.channel<Tick>("other " + std::to_string(i)));
    heard.push_back(others.back()->subscribe(hear));
  }
  std::uint64_t refused = 0;
  struct Other {
    Channel<Tick>& channel;
    std::uint64_t& refused;
  } other{tocks, refused};
  const auto act = [](void* with) {
    const auto& o = *static_cast<Other*>(with);
    if (o.channel.publish({1}).code == PublishCode::too_deep) ++o.refused;
  };
  (void)ticks.publish({1});
  (void)tocks.publish({1});
  bool reached = true;
  for (long at = 1; reached; ++at) {
    for (Channel<Tick>* one : others) (void)one->publish({1});  // so that it remembers neither
    Stopped stopped(at, act, &other);
    reached = stopped.run([&] { (void)ticks.publish({1}); });
  }
  EXPECT_GT(refused, 0) << "it is let into the table in the middle of a look";
  EXPECT_EQ(tocks.stats().too_deep, refused);
}

/// Of a table of what is open: at each instruction of a beginning its id ends, and another one
/// takes its place. That one can begin, whatever the late one does.
TEST(HandlerTest, WhoBeginsTooLateTakesNothingFromTheNext) {
  if (!stops_after_each_instruction()) GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  struct Word {
    std::uint64_t word = 0;
  };
  struct Other {
    engine::OpenTable<Word> table{1};
    std::uint64_t id = 0, next = 0;
  } other;
  const auto act = [](void* with) {
    auto& o = *static_cast<Other*>(with);
    (void)o.table.end(o.id);
    (void)o.table.open(o.next, {});
  };
  for (long at = 1;; ++at) {
    other.id = static_cast<std::uint64_t>(at);
    other.next = other.id + (std::uint64_t{1} << 20);  // its place is the same
    ASSERT_TRUE(other.table.open(other.id, {}));
    Stopped stopped(at, act, &other);
    if (!stopped.run([&] { (void)other.table.begin(other.id, 1'000); })) break;
    EXPECT_TRUE(other.table.begin(other.next, 2'000)) << "after " << at << " instructions";
    EXPECT_EQ(other.table.end(other.next)->begun_at, 2'000) << "after " << at << " instructions";
  }
}

constinit engine::Presence presence;  // never destroyed, as its users' are

/// The handler enters and leaves at each instruction of an entry, of the first one of a thread too.
TEST(HandlerTest, ItMayBePresentWhereverItInterruptsAnEntry) {
  if (!stops_after_each_instruction()) GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  struct Seen {
    int entered = 0, refused = 0, wrong = 0;
  } seen;
  const auto act = [](void* with) {
    auto& s = *static_cast<Seen*>(with);
    const bool was = presence.inside();
    if (!presence.enter()) {
      ++s.refused;
      return;
    }
    ++s.entered;
    if (!presence.inside()) ++s.wrong;
    presence.leave();
    if (presence.inside() != was) ++s.wrong;
  };
  const auto stopped_at = [&](long at) {
    Stopped stopped(at, act, &seen);
    const bool reached = stopped.run([&] {
      if (!presence.enter()) ++seen.wrong;
      if (!presence.inside()) ++seen.wrong;
      presence.leave();
    });
    if (presence.wait_until_none(0) != engine::Presence::Waited::none_inside) ++seen.wrong;
    return reached;
  };
  bool reached = !is_sanitized();  // a sanitizer's allocator goes a long way
  for (long at = 1; reached; at += 7) std::thread([&] { reached = stopped_at(at); }).join();
  reached = presence.enter();
  presence.leave();
  for (long at = 1; reached; at += is_sanitized() ? 41 : 1) reached = stopped_at(at);
  EXPECT_EQ(seen.wrong, 0);
  EXPECT_GT(seen.entered, is_sanitized() ? 2 : 20);
}

/// A handler that waits for the thread that it interrupts would wait for ever, also where that
/// thread's record is not known yet, or not any more.
TEST(HandlerTest, ItDoesNotWaitForTheEntryThatItInterrupts) {
  if (!stops_after_each_instruction()) GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  static std::atomic<int> asked, timeouts;
  asked = timeouts = 0;
  const auto act = [](void*) {
    ++asked;
    if (presence.wait_until_none(0) == engine::Presence::Waited::timeout) ++timeouts;
  };
  const auto stopped_at = [&](long at) {
    Stopped stopped(at, act, nullptr);
    return stopped.run([] {
      if (presence.enter()) presence.leave();
    });
  };
  bool reached = true;  // a sanitizer's allocator goes a long way
  for (long at = 1; reached; at += is_sanitized() ? 997 : 1)
    std::thread([&] { reached = stopped_at(at); }).join();
  EXPECT_EQ(timeouts, 0);
  EXPECT_GT(asked, is_sanitized() ? 0 : 5);
}

/// For every processor: another thread sends signals while this one publishes, waits and is
/// refused.
TEST(HandlerTest, WhateverSignalsComeNothingIsLost) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  const auto hear = ticks.subscribe([&](const Tick&) { ++heard; });
  static Publisher<Tick> own;
  own = std::move(ticks.publisher(of(LaneKind::ring, Overflow::block, 8))).value();
  static std::atomic<std::uint64_t> said, accepted, handled;
  said = accepted = handled = 0;
  const auto say = [] {
    ++said;
    if (own.publish({1})) ++accepted;
  };
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    ++said;
    if (own.publish({2})) ++accepted;
    ++handled;
  };
  ::sigaction(SIGUSR1, &action, &before);
  const pthread_t publisher = ::pthread_self();
  std::atomic<bool> over{false};
  std::thread sender([&] {
    while (!over) {
      const std::uint64_t had = handled;
      (void)::pthread_kill(publisher, SIGUSR1);
      while (handled == had && !over) std::this_thread::yield();
    }
  });
  while (handled < 300) say();
  over = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, accepted);
  EXPECT_EQ(ticks.stats().offered, said);
  EXPECT_EQ(own.ledger().offered, said);
  EXPECT_TRUE(bus.verify_accounting());
  own = {};
}

}  // namespace
}  // namespace ringmain::tests
