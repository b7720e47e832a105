// Scenarios: events flow from publishers to workers that park, pass leases, and end.
#include "engine/deliver/ready_channels.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {

void park() {
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  const auto publishers = 1 + choose(2);
  const auto each = 1 + choose(3);
  Threads threads;
  for (std::uint64_t id = 0; id < publishers; ++id) {
    threads.start([&, id, lane = &lane_of(*channel, lane_options())] {
      for (std::uint64_t n = 1; n <= each; ++n)
        expect(say(*lane, number(id, n)) == Pushed::accepted, "an event is refused");
    });
  }
  check.await(static_cast<std::uint32_t>(publishers * each));
}

void flush() {
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  std::array<Atomic<std::uint64_t>, 2> said{};
  Threads threads;
  for (std::uint64_t id = 0; id < said.size(); ++id) {
    threads.start([&, id, lane = &lane_of(*channel, lane_options())] {
      for (std::uint64_t n = 1; n <= 2; ++n) {
        expect(say(*lane, number(id, n)) == Pushed::accepted, "an event is refused");
        said[id].store(n);
      }
    });
  }
  for (int round = 0; round < 2; ++round) {
    const std::array before{said[0].load(), said[1].load()};
    expect(crew->flush(-1), "flush() gave up");
    for (std::uint64_t id = 0; id < before.size(); ++id)
      expect(check.last(id) >= before[id], "flush() returned before what was accepted was heard");
  }
}

namespace {

void stop_under_publishers(bool abort) {
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  std::array<Atomic<std::uint64_t>, 2> accepted{};
  std::array<Lane*, 2> lanes{};
  Threads threads;
  for (std::uint64_t id = 0; id < 2; ++id) {
    lanes[id] = &lane_of(*channel, lane_options());
    threads.start([&, id] {
      for (std::uint64_t n = 1; n <= 3; ++n) {
        const Pushed result = say(*lanes[id], number(id, n));
        if (result == Pushed::closed) break;
        expect(result == Pushed::accepted, "an event is refused, but not as closed");
        accepted[id].store(n);
      }
    });
  }
  crew.stop(abort);
  const std::array heard{check.last(0), check.last(1)};
  threads.join();
  for (std::uint64_t id = 0; id < 2; ++id) {
    expect(heard[id] == check.last(id), "an event is heard after stop()");
    const std::uint64_t discarded = lanes[id]->undelivered.discarded.load();
    expect(abort || discarded == 0, "stop(drain) discards");
    expect(heard[id] + discarded == accepted[id].load(), "accepted is not heard and discarded");
    expect(say(*lanes[id], number(id, 9)) == Pushed::closed, "an event is accepted after stop()");
  }
}

}  // namespace

void stop_drain() {
  stop_under_publishers(false);
}
void stop_abort() {
  stop_under_publishers(true);
}

void blocked() {
  Crew crew(1);
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  LaneOptions o = lane_options(1 + static_cast<std::uint32_t>(choose(2)));
  o.overflow = engine::Overflow::block;
  o.block_ns_max = -1;
  Lane& lane = lane_of(*channel, o);
  Atomic<std::uint64_t> accepted{0};
  const bool stops = choose(2) == 0;
  Threads threads;
  threads.start([&] {
    for (std::uint64_t n = 1; n <= 5; ++n) {
      const Pushed result = say(lane, number(0, n));
      if (stops && result == Pushed::closed) return;
      expect(result == Pushed::accepted, "a blocked publisher is refused");
      expect(lane.published() - lane.consumed.load() <= o.capacity, "more than the bound is there");
      accepted.store(n);
    }
  });
  if (stops) {
    crew.stop();
    threads.join();
    expect(check.last(0) == accepted.load(), "accepted is not heard");
  } else {
    check.await(5);
  }
}

/// A callback that never returns by itself holds up its channel only: the others are passed on.
void leases() {
  Crew crew(2);
  std::array<Ref<ChannelCore>, 3> channels{crew.channel(), crew.channel(), crew.channel()};
  OrderCheck check, other;
  Atomic<std::uint32_t> stuck{0};
  const AttachedSubscriber waits(*channels[0], [&](const Run& run) {
    stuck.store(1);
    engine::futex_wake(stuck, INT_MAX);
    check.await(2);
    other(run);
  });
  const AttachedSubscriber a(*channels[1], check.callback());
  OrderCheck second;
  const AttachedSubscriber b(*channels[2], [&](const Run& run) { second(run); });
  Threads threads;
  std::array<Lane*, 3> lanes{};
  for (std::size_t i = 0; i < 3; ++i) lanes[i] = &lane_of(*channels[i], lane_options());
  threads.start([&] { expect(say(*lanes[0], number(0, 1)) == Pushed::accepted, "refused"); });
  threads.start([&] {
    for (std::uint64_t n = 1; n <= 2; ++n) {
      expect(say(*lanes[1], number(0, n)) == Pushed::accepted, "refused");
      expect(say(*lanes[2], number(0, n)) == Pushed::accepted, "refused");
    }
  });
  other.await(1);
  second.await(2);
}

void lanes() {
  Crew crew(1);
  const auto channel = crew.channel();
  struct Last {
    std::uint32_t publisher = 0;
    std::uint64_t sequence = 0;
  };
  std::array<Last, 8> known{};
  std::size_t publishers = 0;
  Atomic<std::uint32_t> heard{0};
  const AttachedSubscriber attached(*channel, [&](const Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::size_t k = 0;
      while (k < publishers && known[k].publisher != run.publisher) ++k;
      if (k == publishers) known[publishers++].publisher = run.publisher;
      expect(run.header(i).sequence - run.first_sequence == ++known[k].sequence,
             "a publisher's sequence is not 1, 2, 3 …");
    }
    heard.fetch_add(run.count);
    engine::futex_wake(heard, INT_MAX);
  });
  const LaneOptions o = lane_options();
  Threads threads;
  for (int t = 0; t < 2; ++t) {
    threads.start([&] {
      for (int round = 0; round < 2; ++round) {
        Lane& lane = lane_of(*channel, o);
        for (std::uint64_t n = 1; n <= 2; ++n)
          expect(say(lane, n) == Pushed::accepted, "an event is refused");
        ChannelCore::give_lane(lane);
      }
    });
  }
  for (std::uint32_t now = heard.load(); now < 8; now = heard.load())
    (void)engine::futex_wait(heard, now);
  expect(publishers == 4, "two publishers are taken for one");
}

/// Some forty links of segments of one and two slots, that come back from several owners, and to
/// two publishers.
void segments() {
  const Crew crew(1 + static_cast<unsigned>(choose(2)));
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  LaneOptions o = lane_options(1 + static_cast<std::uint32_t>(choose(4)));
  o.kind = engine::LaneKind::segments;
  o.overflow = engine::Overflow::block;
  o.block_ns_max = -1;
  enum : std::uint64_t { kEvents = 7 };
  for (std::uint64_t id = 0; id < 2; ++id) {
    Lane& lane = lane_of(*channel, o);
    Threads threads;
    threads.start([&lane, id] {
      for (std::uint64_t n = 1; n <= kEvents; ++n)
        expect(say(lane, number(id, n)) == Pushed::accepted, "an event is refused");
    });
    threads.join();
    if (id == 0) {
      // Half of the time the next publisher gets this lane, half of the time a new one.
      if (choose(2) == 0) check.await(kEvents);
      ChannelCore::give_lane(lane);
    }
  }
  check.await(2 * kEvents);
}

/// Three channels that wait all the time. A thread that has a turn counts it for those that wait;
/// the turn may have begun before their wait.
void turns() {
  constexpr std::uint32_t kChannels = 5, kThreads = 2, kTurns = 16;
  constexpr std::uint32_t kBound = kThreads * (kChannels - 1) + 2 * (kThreads - 1);
  engine::ReadyChannels ready;
  ready.use(128);
  std::array<std::uint32_t, kChannels> places{};
  std::array<Atomic<std::uint32_t>, kChannels> waited{}, had{};
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    places[i] = i * 20 + static_cast<std::uint32_t>(choose(3)) * 9;  // in one word, or in two
    choose(2) == 0 ? ready.pass(places[i]) : ready.signal(places[i]);
  }
  Threads threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.start([&] {
      for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
        const engine::ReadyChannels::Turn taken = ready.take();
        if (taken.kind == engine::ReadyChannels::Turn::none) continue;
        for (std::uint32_t i = 0; i < kChannels; ++i) {
          if (places[i] == taken.index) {
            expect(had[i].exchange(1) == 0, "one channel's turn is two workers'");
          } else if (ready.waits(places[i])) {
            expect(waited[i].fetch_add(1) < kBound, "a channel waits while others have turns");
          }
        }
        for (std::uint32_t i = 0; i < kChannels; ++i) {
          if (places[i] != taken.index) continue;
          waited[i].store(0);
          had[i].store(0, std::memory_order_seq_cst);
        }
        ready.pass(taken.index);
      }
    });
  }
  threads.join();
}

}  // namespace ringmain::interleave
