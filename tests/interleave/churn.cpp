// Scenarios: subscribers, mailboxes and threads come and go while events flow.
#include <memory>

#include "engine/deliver/pull.hpp"
#include "engine/publish/thread_lanes.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

/// Perhaps it counts as called often already.
void bias(engine::Subscriber& subscriber) {
  if (choose(2) == 0 && !engine::barrier_is_fence()) subscriber.gate.bias();
}

}  // namespace

void detach() {
  Crew crew(1 + static_cast<unsigned>(choose(2)));
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber always(*channel, check.callback());
  // Snapshots are freed once so many are retired: bring that near.
  for (std::uint64_t k = choose(2) * (engine::SubscriberList::kDueAt / 2 - 1); k > 0; --k)
    const AttachedSubscriber brief(*channel, [](const Run&) {});
  Atomic<std::uint32_t> living{0};
  Lane& lane = lane_of(*channel, lane_options());
  Threads threads;
  threads.start([&] {
    for (std::uint64_t n = 1; n <= 3; ++n)
      expect(say(lane, number(0, n)) == Pushed::accepted, "an event is refused");
  });
  threads.start([&] {
    for (int round = 0; round < 2; ++round) {
      bool gone = false;
      {
        const AttachedSubscriber comes(
            *channel, [&gone, alive = Alive(living)](const Run&) mutable {
              expect(!gone, "a callback runs after its detaching returned");
              alive.touch();
              expect(!gone, "a callback runs when its detaching has returned");
            });
        bias(*comes);
        step("listen", choose(2) == 0, {"detach", 0});
      }
      gone = true;
      expect(living.load() == 0, "captures live on after the detaching returned");
    }
  });
  check.await(3);
}

/// Two callbacks close each other, as reset() in a callback does; a third thread waits for both.
void deferred() {
  Crew crew(2);
  const std::array channels{crew.channel(), crew.channel()};
  Atomic<std::uint32_t> living{0};
  std::array<engine::Subscriber*, 2> subscribers{};
  std::array<Atomic<std::uint32_t>, 2> may_run{};
  for (std::size_t i = 0; i < 2; ++i) {
    may_run[i].store(1);
    subscribers[i] = tests::make_test_subscriber([&, i, alive = Alive(living)](const Run&) mutable {
      expect(may_run[i].load() == 1, "a callback runs after it was quiescent");
      alive.touch();
      engine::Subscriber& other = *subscribers[1 - i];
      if (engine::close_deferred(other)) engine::destroy_captures(other);
      alive.touch();
    });
  }
  for (std::size_t i = 0; i < 2; ++i) {
    subscribers[i]->holders.fetch_add(1);
    expect(channels[i]->attach(subscribers[i]), "no memory");
    bias(*subscribers[i]);
  }
  Threads threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.start([&, lane = &lane_of(*channels[i], lane_options())] {
      for (std::uint64_t n = 1; n <= 2; ++n) {
        const Pushed result = say(*lane, number(0, n));
        expect(result == Pushed::accepted || result == Pushed::unheard, "an event is refused");
      }
    });
  }
  for (std::size_t i = 0; i < 2; ++i) {
    subscribers[i]->gate.close();
    channels[i]->unlist(subscribers[i]);
    if (engine::wait_uncalled(*subscribers[i], -1) == engine::Gate::Waited::claimed)
      engine::destroy_captures(*subscribers[i]);
    may_run[i].store(0);
    expect(living.load() <= 1 - i, "captures live on after the wait");
    engine::drop_subscriber(subscribers[i]);
  }
}

namespace {

/// An isolated subscriber's mailbox: workers drain it.
void isolated_mailbox(const Crew& crew) {
  const auto box = crew.channel();
  OrderCheck check;
  Lane& lane = lane_of(*box, lane_options());
  {
    const AttachedSubscriber attached(*box, [&](const Run& run) { check(run); });
    for (std::uint64_t n = 1; n <= 2; ++n)
      expect(say(lane, number(0, n)) == Pushed::accepted, "an event is refused");
    if (choose(2) == 0) check.await(2);
  }
  ChannelCore::give_lane(lane);
  crew->retire(*box);
}

/// A mailbox that this thread drains, and nobody else.
void pulled_mailbox(const Crew& crew) {
  ChannelCoreOptions o;
  o.pulled = true;
  const auto box = crew.channel(o);
  box->begin_listening();
  Lane& lane = lane_of(*box, lane_options());
  const auto reader = std::make_unique<engine::Drainer>();
  for (std::uint64_t n = 1; n <= 2; ++n) {
    expect(say(lane, number(0, n)) == Pushed::accepted, "an event is refused");
    expect(engine::wait_for_events(*box, -1), "nothing is there");
    const Run run = engine::take_run(lane, reader->room, 8);
    expect(run.count == 1 && tests::number_of(run, 0) == number(0, n),
           "somebody else drains a pulled mailbox");
    engine::finish_run(*box, lane, run);
  }
  ChannelCore::give_lane(lane);
  crew->retire(*box);
}

}  // namespace

void mailboxes() {
  const Crew crew(1 + static_cast<unsigned>(choose(2)));
  Threads threads;
  for (int t = 0; t < 2; ++t) {
    threads.start([&] {
      for (int round = 0; round < 3; ++round) {
        if (choose(2) == 0) {
          isolated_mailbox(crew);
        } else {
          pulled_mailbox(crew);
        }
      }
    });
  }
  threads.join();
  // A retired one must not wait for the end of the bus until it is disposed of.
  while (!crew->channels().empty()) step("wait", true, {"mailboxes", 0});
}

void pull() {
  Crew crew(1);
  ChannelCoreOptions o;
  o.pulled = true;
  const auto box = crew.channel(o);
  box->begin_listening();
  std::array<Lane*, 2> lanes{&lane_of(*box, lane_options()), &lane_of(*box, lane_options())};
  Threads feeders;
  for (std::uint64_t id = 0; id < 2; ++id) {
    feeders.start([&, id] {
      for (std::uint64_t n = 1; n <= 2; ++n)
        expect(say(*lanes[id], number(id, n)) == Pushed::accepted, "an event is refused");
    });
  }
  OrderCheck check;
  Threads readers;
  readers.start([&] {
    const auto reader = std::make_unique<engine::Drainer>();
    while (engine::wait_for_events(*box, -1)) {
      for (Lane* lane : lanes) {
        const Run run = engine::take_run(*lane, reader->room, 8);
        if (run.count == 0) continue;
        check(run);
        engine::finish_run(*box, *lane, run);
      }
    }
    expect(crew->stopped(), "a reader that waits for ever is told that nothing is there");
    expect(check.heard() == 4, "a reader misses what was accepted before stop()");
  });
  if (choose(2) == 0) check.await(4);  // else stop() wakes the reader for the last ones
  feeders.join();
  crew.stop();
}

void thread_lanes() {
  Crew crew(1);
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  for (std::uint64_t round = 0; round < 2; ++round) {
    if (round == 1) expect(crew->flush(-1), "flush() gave up");  // the lanes are free for others
    Threads threads;
    for (std::uint64_t id = 0; id < 2; ++id) {
      threads.start([&, id = 2 * round + id] {
        for (std::uint64_t n = 1; n <= 2; ++n) {
          Lane* lane = engine::thread_lane(*channel);
          expect(lane != nullptr && say(*lane, number(id, n)) == Pushed::accepted, "refused");
        }
      });
    }
  }
  check.await(8);
  expect(channel->lane_count() <= 2, "lanes of threads that ended are not used again");
}

}  // namespace ringmain::interleave
