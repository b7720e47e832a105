// Does a mailbox that its user drains lose nothing, whatever the reader does?
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class MailboxTest : public ::testing::Test {
 protected:
  void publish(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) ASSERT_EQ(ticks_.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  auto keep() {
    return [this](const Tick& t) { got_.push_back(t.n); };
  }
  static bool readable(int fd, int limit_ms) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, limit_ms) == 1;
  }
  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
  std::vector<std::uint64_t> got_;
};

/// A run in memory of its own, as other languages take it.
struct Taken {
  struct Free {
    void operator()(std::byte* given) const noexcept { std::free(given); }
  };
  std::unique_ptr<std::byte, Free> room;
  std::size_t bytes = 0;
  engine::Run run;
  static std::byte* make(void* maker, std::size_t bytes) noexcept {
    auto& taken = *static_cast<Taken*>(maker);
    taken.bytes = bytes;
    taken.room.reset(static_cast<std::byte*>(std::aligned_alloc(16, bytes)));
    return taken.room.get();
  }
};

class RunTest : public MailboxTest {
 protected:
  ~RunTest() override { detail::close_mailbox(box_); }
  std::optional<Taken> take(std::size_t max) {
    Taken taken;
    if (!detail::take_run_of(*box_, &Taken::make, &taken, max, taken.run)) return std::nullopt;
    detail::finish_run_of(*box_);
    return taken;
  }
  detail::PullMailbox* box_ =
      detail::make_pull_mailbox(detail::Erased::core(bus_), "test.*", SubscribeOptions{});
};

TEST_F(MailboxTest, ItHoldsWhatWasPublishedInOrder) {
  auto box = ticks_.mailbox();
  publish(0, 600);
  while (box.drain(keep(), 100) != 0) {
  }
  ASSERT_EQ(got_.size(), 600u);
  for (std::uint64_t i = 0; i < 600; ++i) EXPECT_EQ(got_[i], i);
  EXPECT_EQ(box.stats().delivered, 600u);
}

TEST_F(MailboxTest, DrainTakesAtMostWhatIsAsked) {
  auto box = ticks_.mailbox();
  publish(0, 10);
  EXPECT_EQ(box.drain(keep(), 3), 3u);
  EXPECT_EQ(box.stats().pending, 10u) << "a run counts as read once its last event was";
  EXPECT_EQ(box.drain(keep(), 0), 0u);
  EXPECT_EQ(box.drain(keep(), 100), 7u);
  EXPECT_EQ(box.drain(keep(), 100), 0u);
  EXPECT_EQ(box.stats().pending, 0u);
  EXPECT_EQ(got_.size(), 10u);
}

TEST_F(MailboxTest, RousingEndsTheWaitUnderWayOrTheNextOne) {
  auto box = ticks_.mailbox();
  box.rouse();
  EXPECT_FALSE(box.wait_for(kLong)) << "the next one";
  for (int i = 0; i < 1000; ++i) {
    std::thread rouses([&] { box.rouse(); });
    EXPECT_FALSE(box.wait_for(kLong)) << "under way, or just not yet";
    rouses.join();
  }
  box.rouse();
  publish(0, 1);
  EXPECT_TRUE(box.wait_for(kLong)) << "an event is there, roused or not";
}

TEST_F(RunTest, ARunLiesInMemoryThatItsTakerOwnsAndMayKeep) {
  publish(0, 100);
  const auto first = take(60);
  ASSERT_TRUE(first.has_value());
  const auto second = take(4096);
  ASSERT_TRUE(second.has_value());
  publish(100, 300);  // into the queue's slots that the first two have left
  const auto third = take(4096);
  ASSERT_TRUE(third.has_value());
  std::uint64_t n = 0;
  for (const auto* taken : {&*first, &*second, &*third}) {
    const std::byte* begin = taken->room.get();
    EXPECT_GE(taken->run.first, begin);
    EXPECT_LE(taken->run.first + std::size_t{taken->run.count} * taken->run.stride,
              begin + taken->bytes);
    for (std::uint32_t i = 0; i < taken->run.count; ++i)
      EXPECT_EQ(detail::event_of<Tick>(taken->run, i).n, n++);
  }
  EXPECT_EQ(first->run.count, 60u);
  EXPECT_EQ(first->bytes, 60u * first->run.stride) << "no more memory than its events need";
  EXPECT_EQ(n, 300u);
  EXPECT_FALSE(take(1).has_value());
}

TEST_F(RunTest, OfAnOverrunMailboxARunIsNeverLargerThanTheMemoryMadeForIt) {
  SubscribeOptions options;
  options.queue_events = 1000;
  options.overflow = Overflow::drop_oldest;
  engine::ChannelCore& channel = *detail::Erased::channel(bus_, schema<Tick>())
                                      .value();  // both kinds of lane: a ring coalesces
  for (const bool ring : {false, true}) {
    for (const std::size_t max : {1u, 10u, 100u, 4096u}) {
      detail::close_mailbox(std::exchange(
          box_,
          detail::make_pull_mailbox(
              channel, options, ring ? detail::key_writer<Tick>(&Tick::n) : detail::KeyWriter{})));
      publish(0, 1900);
      std::uint64_t next = 900;  // the last 1000 are heard
      while (const auto taken = take(max)) {
        const engine::Run& run = taken->run;
        ASSERT_LE(run.count, max);
        ASSERT_GE(run.first, taken->room.get());
        ASSERT_LE(run.first + std::size_t{run.count} * run.stride,
                  taken->room.get() + taken->bytes);
        for (std::uint32_t i = 0; i < run.count; ++i)
          ASSERT_EQ(detail::event_of<Tick>(run, i).n, next++) << ring << ", " << max;
      }
      EXPECT_EQ(next, 1900u);
      EXPECT_EQ(detail::mailbox_stats(*box_).dropped, 900u);
      EXPECT_EQ(detail::mailbox_stats(*box_).pending, 0u);
    }
  }
}

TEST_F(RunTest, ARunCountsAsPendingUntilItIsFinishedAndIsAloneTillThen) {
  publish(0, 10);
  const auto marks = detail::mailbox_marks(*box_);
  Taken taken;
  ASSERT_TRUE(detail::take_run_of(*box_, &Taken::make, &taken, 256, taken.run));
  EXPECT_FALSE(detail::mailbox_reached(*box_, marks));
  EXPECT_EQ(detail::mailbox_stats(*box_).pending, 10u);
  Taken other;
  EXPECT_FALSE(detail::take_run_of(*box_, &Taken::make, &other, 256, other.run));
  detail::finish_run_of(*box_);
  EXPECT_TRUE(detail::mailbox_reached(*box_, marks));
  EXPECT_EQ(detail::mailbox_stats(*box_).pending, 0u);
  EXPECT_EQ(detail::mailbox_stats(*box_).delivered, 10u);
}

TEST_F(RunTest, WithoutMemoryNothingIsTakenAndNothingLost) {
  publish(0, 10);
  engine::Run run;
  const auto none = [](void*, std::size_t) noexcept -> std::byte* { return nullptr; };
  EXPECT_FALSE(detail::take_run_of(*box_, none, nullptr, 256, run));
  const auto taken = take(256);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->run.count, 10u);
}

TEST_F(RunTest, ItsDescriptorIsReadableAsLongAsEventsAreLeft) {
  const int fd = detail::mailbox_fd(*box_);
  publish(0, 10);
  EXPECT_TRUE(readable(fd, -1));
  EXPECT_EQ(take(4)->run.count, 4u);
  EXPECT_TRUE(readable(fd, -1));
  EXPECT_EQ(take(256)->run.count, 6u);
  EXPECT_FALSE(readable(fd, 0));
  publish(10, 11);
  EXPECT_TRUE(readable(fd, -1));
}

TEST_F(MailboxTest, WhatAReaderThrowsLosesOnlyTheEventItThrewAt) {
  auto box = ticks_.mailbox();
  publish(0, 10);
  std::size_t threw = 0;
  const auto read = [&](const Tick& t) {
    if (t.n % 3 == 0) throw std::runtime_error("three");
    got_.push_back(t.n);
  };
  for (bool more = true; more;) {
    try {
      more = box.drain(read) != 0;
    } catch (const std::runtime_error&) {
      ++threw;
    }
  }
  EXPECT_EQ(threw, 4u);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{1, 2, 4, 5, 7, 8}));
  EXPECT_EQ(box.stats().pending, 0u);
  EXPECT_FALSE(box.wait_for(nanoseconds(0)));
}

TEST_F(MailboxTest, AReaderMayDrainAndResetItsOwnMailbox) {
  auto box = ticks_.mailbox();
  publish(0, 10);
  std::size_t inner = 99;
  EXPECT_EQ(box.drain([&](const Tick& t) {
    got_.push_back(t.n);
    inner = box.drain([](const Tick&) {});
  }),
            10u);
  EXPECT_EQ(inner, 0u) << "a drain inside a drain takes nothing";
  EXPECT_EQ(got_.size(), 10u);
  publish(10, 20);
  got_.clear();
  EXPECT_EQ(box.drain([&](const Tick& t) {
    got_.push_back(t.n);
    if (t.n == 12) box.reset();
  }),
            3u);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{10, 11, 12}));
  EXPECT_FALSE(box.attached());
  EXPECT_EQ(box.drain([](const Tick&) {}), 0u);
}

TEST_F(MailboxTest, WaitingEndsWithAnEventOrTheTime) {
  auto box = ticks_.mailbox();
  EXPECT_FALSE(box.wait_for(nanoseconds(0)));
  EXPECT_FALSE(box.wait_for(milliseconds(1)));
  std::thread publisher([&] { ticks_.post({7}); });
  EXPECT_TRUE(box.wait_for(kLong));
  EXPECT_EQ(box.drain(keep()), 1u);
  publisher.join();
}

TEST_F(MailboxTest, WaitingSeesTheRestOfARun) {
  auto box = ticks_.mailbox();
  publish(0, 10);
  EXPECT_EQ(box.drain(keep(), 3), 3u);
  EXPECT_TRUE(box.wait_for(nanoseconds(0)));
}

TEST_F(MailboxTest, NoEventIsMissedByAReaderThatSleeps) {
  auto box = ticks_.mailbox();
  constexpr std::size_t kEvents = 3000;
  std::atomic<std::size_t> read{0};
  std::thread publisher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(ticks_.publish({i}), PublishCode::accepted);
      if (i % 8 == 0) {
        ASSERT_TRUE(eventually([&] { return read > i; }));
      }
    }
  });
  while (read < kEvents) {
    ASSERT_TRUE(box.wait_for(kLong)) << read;
    read += box.drain(keep(), 5);
  }
  publisher.join();
  for (std::size_t i = 0; i < kEvents; ++i) ASSERT_EQ(got_[i], i);
}

TEST_F(MailboxTest, ItsDescriptorPollsReadableWhileEventsAreThere) {
  auto box = ticks_.mailbox();
  const int fd = box.fd();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(box.fd(), fd);
  EXPECT_FALSE(readable(fd, 0));
  publish(0, 10);
  EXPECT_TRUE(readable(fd, 60'000));
  EXPECT_EQ(box.drain(keep(), 4), 4u);
  EXPECT_TRUE(readable(fd, 0));
  EXPECT_EQ(box.drain(keep(), 100), 6u);
  EXPECT_FALSE(readable(fd, 0));
}

TEST_F(MailboxTest, NoEventIsMissedByAReaderThatPolls) {
  auto box = ticks_.mailbox();
  const int fd = box.fd();
  ASSERT_GE(fd, 0);
  constexpr std::size_t kEvents = 2000;
  std::atomic<std::size_t> read{0};
  std::thread publisher([&] {
    for (std::size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(ticks_.publish({i}), PublishCode::accepted);
      if (i % 4 == 0) {
        ASSERT_TRUE(eventually([&] { return read > i; }));
      }
    }
  });
  while (read < kEvents) {
    ASSERT_TRUE(readable(fd, 60'000)) << read;
    read += box.drain(keep(), 3);
  }
  publisher.join();
}

TEST_F(MailboxTest, AFullOneDropsAndCounts) {
  SubscribeOptions o;
  o.queue_events = 4;
  auto box = ticks_.mailbox(o);
  publish(0, 10);
  const SubscriberStats s = box.stats();
  EXPECT_EQ(s.offered, 10u);
  EXPECT_EQ(s.dropped, 6u);
  EXPECT_EQ(s.pending, 4u);
  EXPECT_EQ(box.drain(keep()), 4u);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(box.stats().delivered, 4u);
}

TEST_F(MailboxTest, StampsComeThroughIt) {
  auto box = ticks_.mailbox();
  PublisherOptions o;
  o.source_time = true;
  auto p = std::move(ticks_.publisher(o)).value();
  ASSERT_EQ(p.publish_at({1}, 55), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(ticks_.publish({2}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  std::vector<Stamp> stamps;
  EXPECT_EQ(box.drain([&](const Tick&, const Stamp& s) { stamps.push_back(s); }), 2u);
  if (stamps[0].time_from != TimeFrom::source) std::swap(stamps[0], stamps[1]);
  EXPECT_EQ(stamps[0].time_ns, 55);
  EXPECT_EQ(stamps[0].time_from, TimeFrom::source);
  EXPECT_EQ(stamps[0].sequence, 1u);
  EXPECT_EQ(stamps[1].time_from, TimeFrom::publisher);
  EXPECT_EQ(stamps[1].sequence, 1u);
}

TEST_F(MailboxTest, AnAssignedOverMailboxIsDetachedAtOnce) {
  auto a = ticks_.mailbox();
  auto b = ticks_.mailbox();
  EXPECT_EQ(ticks_.stats().subscribers, 2u);
  a = std::move(b);
  EXPECT_EQ(ticks_.stats().subscribers, 1u);
  EXPECT_TRUE(a.attached());
  publish(0, 3);
  EXPECT_EQ(a.drain(keep()), 3u);
  a = {};
  EXPECT_EQ(ticks_.stats().subscribers, 0u);
  EXPECT_FALSE(a.wait_for(nanoseconds(0)));
  EXPECT_EQ(a.fd(), -1);
}

TEST_F(MailboxTest, ItOutlivesItsBusWithWhatItHolds) {
  Mailbox<Tick> box;
  AnyMailbox any;
  {
    Bus bus(with_workers(1));
    box = bus.channel<Tick>().mailbox();
    any = bus.mailbox(">");
    for (std::uint64_t i = 0; i < 5; ++i)
      ASSERT_EQ(bus.channel<Tick>().publish({i}), PublishCode::accepted);
  }
  EXPECT_TRUE(box.wait_for(kForEver));
  EXPECT_EQ(box.drain(keep()), 5u);
  EXPECT_FALSE(box.wait_for(kForEver)) << "nothing will ever come: it must not sleep";
  std::size_t views = 0;
  any.drain(
      [&](const EventView& v) { views += v.as<Tick>() != nullptr && v.channel() == "test.tick"; });
  EXPECT_EQ(views, 5u);
}

TEST_F(MailboxTest, StopWakesASleepingReaderThoughACallbackIsStuck) {
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto& ticks = bus->channel<Tick>();
  auto& tocks = bus->channel<Tock>();
  Door door;
  Subscription stuck = tocks.subscribe([&](const Tock&) { door.pass(); });
  auto box = ticks.mailbox();
  std::thread reader([&] { EXPECT_FALSE(box.wait_for(kLong)); });
  ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(bus->stop(StopMode::drain, milliseconds(10)).stuck.size(), 1u);
  reader.join();
  door.open();
  EXPECT_EQ(stuck.reset(), Detached::done);
}

}  // namespace
}  // namespace ringmain::tests
