// Scenarios: the ways in which events are delivered that are not one worker's alone.
#include <array>
#include <climits>
#include <new>

#include "engine/deliver/merge.hpp"
#include "engine/deliver/own_thread.hpp"
#include "engine/system/clock.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

/// Publishers of their own lanes, which say how far they have come.
class Publishers {
 public:
  enum : std::uint64_t { kPublishers = 2 };
  void start(Threads& threads, ChannelCore& channel, std::uint64_t each, bool in_place) {
    for (std::uint64_t id = 0; id < kPublishers; ++id) {
      LaneOptions o = lane_options();
      if (!in_place) o.kind = engine::LaneKind::moodycamel;
      lanes_[id] = &lane_of(channel, o);
      threads.start([this, id, each] {
        for (std::uint64_t n = 1; n <= each; ++n) {
          const Pushed result = say(*lanes_[id], number(id, n));
          if (result == Pushed::closed) break;
          expect(result == Pushed::accepted, "an event is refused, but not as closed");
          said_[id].store(n);
        }
        ChannelCore::give_lane(*lanes_[id]);
      });
    }
  }
  [[nodiscard]] std::uint64_t said(std::uint64_t id) const { return said_[id].load(); }

 private:
  std::array<Lane*, kPublishers> lanes_{};
  std::array<Atomic<std::uint64_t>, kPublishers> said_{};
};

}  // namespace

/// Runs of one channel are heard by several workers at once, and end in any order.
void parallel() {
  Crew crew(2);
  ChannelCoreOptions options;
  options.parallel = true;
  const auto channel = crew.channel(options);
  std::array<Atomic<std::uint64_t>, Publishers::kPublishers> heard{};  // a bit for each
  const AttachedSubscriber attached(*channel, [&heard](const Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      const std::uint64_t bit = std::uint64_t{1} << (n & 0xff);
      expect((heard[n >> 32].fetch_or(bit) & bit) == 0, "an event is heard twice");
    }
  });
  const auto all_up_to = [&heard](std::uint64_t id, std::uint64_t last) {
    const std::uint64_t ought = (std::uint64_t{2} << last) - 2;
    return (heard[id].load() & ought) == ought;
  };
  Publishers publishers;
  Threads threads;
  publishers.start(threads, *channel, 2, false);
  for (int round = 0; round < 2; ++round) {
    const std::array before{publishers.said(0), publishers.said(1)};
    expect(crew->flush(-1), "flush() gave up");
    for (std::uint64_t id = 0; id < Publishers::kPublishers; ++id)
      expect(all_up_to(id, before[id]), "flush() returned before what was accepted was heard");
  }
  if (choose(2) == 0) threads.join();
  crew.stop();
  const std::array then{heard[0].load(), heard[1].load()};
  threads.join();
  for (std::uint64_t id = 0; id < Publishers::kPublishers; ++id) {
    expect(then[id] == heard[id].load(), "an event is heard after stop()");
    expect(all_up_to(id, publishers.said(id)), "accepted is not heard");
  }
}

/// A busy publisher is waited for, here for ever.
void merged() {
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  ChannelCoreOptions options;
  options.merged = true;
  options.order_gap_ns_max = INT64_MAX;
  const auto channel = crew.channel(options);
  OrderCheck check;
  Atomic<std::uint64_t> youngest{0};
  const AttachedSubscriber attached(*channel, [&](const Run& run) {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t ticket = engine::ticket_of(run, i);
      expect(ticket > youngest.load(), "an event is heard after a younger one");
      youngest.store(ticket);
    }
  });
  Publishers publishers;
  Threads threads;
  publishers.start(threads, *channel, 2, true);
  check.await(4);
  threads.join();
  expect(channel->lane_order()->late.get() == 0, "an event is called late");
  expect(channel->lane_order()->gaps.get() == 0, "a publisher is passed over");
}

/// It is its mailbox's only drainer, and ends when it is told to or the bus has stopped.
void own_thread() {
  Crew crew(1);
  ChannelCoreOptions options;
  options.pulled = options.own_thread = true;
  const auto channel = crew.channel(options);
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  const Ref<engine::OwnThread> own = new engine::OwnThread(channel, "own");
  own->start();
  Publishers publishers;
  Threads threads;
  publishers.start(threads, *channel, 2, true);
  const std::uint64_t end = choose(3);
  if (end == 0) {
    check.await(4);
  } else if (end == 1) {
    threads.join();
    own->end();
    expect(own->join(-1), "it did not end");
    expect(check.heard() == 4, "it ended before all was heard");
  }
  crew.stop();
  const std::uint32_t then = check.heard();
  threads.join();
  expect(own->join(-1), "it did not end");
  expect(then == check.heard(), "an event is heard after stop()");
  for (std::uint64_t id = 0; id < Publishers::kPublishers; ++id)
    expect(check.last(id) == publishers.said(id), "accepted is not heard");
}

/// Two keys, and room for two events of each: the one that is being read and the newest.
void coalesced() {
  enum : std::uint64_t { kKeys = 2, kEvents = 9, kNowhere = ~std::uint64_t{0} };
  Crew crew(1);
  const auto channel = crew.channel();
  std::array<Atomic<std::uint64_t>, kKeys> last{};
  const AttachedSubscriber attached(*channel, [&last](const Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      expect(n > last[n % kKeys].load(),
             "an event is heard twice, or after a newer one of its key");
      last[n % kKeys].store(n);
    }
  });
  LaneOptions o;
  o.kind = engine::LaneKind::ring;
  o.coalesce = true;
  o.capacity = 2 * kKeys;
  Lane& lane = lane_of(*channel, o);
  std::array<std::uint64_t, kKeys> newest{};
  const auto build = [](void* to, void* from) noexcept {
    drain_buffer(false, "build", {"say", 0});
    ::new (to) Numbered{*static_cast<std::uint64_t*>(from)};
  };
  Threads threads;
  threads.start([&] {
    std::array<std::uint64_t, kKeys> queued{kNowhere, kNowhere};
    for (std::uint64_t n = 2; n < 2 + kEvents; ++n) {
      const std::uint64_t key = choose(4) == 0 ? 1 : 0;
      std::uint64_t event = kKeys * n + key;
      newest[key] = event;
      if (queued[key] != kNowhere && engine::replace(lane, queued[key], build, &event, 0)) continue;
      const std::uint64_t next = lane.published();
      expect(engine::push_slowly(lane, build, &event, 0) == Pushed::accepted,
             "there is no room for a key");
      queued[key] = next;
    }
  });
  threads.join();
  expect(crew->flush(-1), "flush() gave up");
  for (std::uint64_t key = 0; key < kKeys; ++key)
    expect(last[key].load() == newest[key], "the newest of a key is not heard");
}

/// What patient subscribers alone hear may lie while a worker rests, but nobody waits for a rest.
void rests() {
  enum : std::int64_t { kRestNs = 1'000'000'000 };
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  crew->set_rest(kRestNs);
  const auto patient = crew.channel(), hurried = crew.channel();
  OrderCheck slow, fast;
  engine::Subscriber* const s = tests::make_test_subscriber(slow.callback());
  s->patient = true;
  s->holders.fetch_add(1);
  expect(patient->attach(s), "no memory");
  const AttachedSubscriber attached(*hurried, fast.callback());
  Lane& lane = lane_of(*patient, lane_options());
  Threads threads;
  const std::int64_t began = engine::now_ns();
  threads.start([&, other = &lane_of(*hurried, lane_options())] {
    for (std::uint64_t n = 1; n <= 2; ++n)
      expect(say(*other, number(0, n)) == Pushed::accepted, "an event is refused");
    fast.await(2);
  });
  for (std::uint64_t n = 1; n <= 3; ++n) {
    expect(say(lane, number(0, n)) == Pushed::accepted, "an event is refused");
    expect(crew->flush(-1), "flush() gave up");
    expect(slow.last(0) == n, "flush() returned before what was accepted was heard");
  }
  threads.join();
  expect(engine::now_ns() - began < kRestNs / 2, "somebody waited for a rest to end by itself");
  s->gate.close();
  patient->unlist(s);
  if (engine::wait_uncalled(*s, -1) == engine::Gate::Waited::claimed) engine::destroy_captures(*s);
  engine::drop_subscriber(s);
}

}  // namespace ringmain::interleave
