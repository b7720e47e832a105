// Scenarios: what goes on beside the flow: calls in publishing threads, eviction, the housekeeper.
#include <memory>

#include "engine/system/clock.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

/// A subscriber that is called in publishing threads, by several at once.
template <class F>
engine::Subscriber* make_inline(F call) {
  engine::Subscriber* s = engine::make_subscriber(sizeof(F));
  ::new (s->captures()) F(std::move(call));
  s->judge = [](engine::Subscriber& self, const std::byte*) noexcept {
    (*std::launder(static_cast<F*>(self.captures())))();
    return engine::Judgement{};
  };
  s->destroy = [](engine::Subscriber& self) noexcept {
    std::destroy_at(std::launder(static_cast<F*>(self.captures())));
  };
  return s;
}

void list(ChannelCore& channel, engine::Subscriber* subscriber) {
  subscriber->holders.fetch_add(1);
  expect(channel.attach(subscriber), "no memory");
}

}  // namespace

/// It leaves as by reset() outside callbacks, or inside of one: then its captures are retired by
/// a publisher that calls it, and a worker destroys them.
void inline_calls() {
  Crew crew(1);
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  Atomic<std::uint32_t> living{0};
  // Rows are freed once so many are retired: bring that near.
  for (std::uint64_t k = choose(2) * (engine::SubscriberList::kDueAt / 2 - 1); k > 0; --k) {
    engine::Subscriber* const brief = make_inline([] {});
    list(*channel, brief);
    channel->unlist(brief);
    if (engine::close_deferred(*brief)) engine::destroy_captures(*brief);
    engine::drop_subscriber(brief);
  }
  engine::Subscriber* const s = make_inline([alive = Alive(living)]() mutable { alive.touch(); });
  list(*channel, s);
  Threads threads;
  for (std::uint64_t id = 0; id < 2; ++id) {
    threads.start([&, id, lane = &lane_of(*channel, lane_options())] {
      for (std::uint64_t n = 1; n <= 2; ++n)
        expect(say(*lane, number(id, n)) == Pushed::accepted, "an event is refused");
    });
  }
  if (choose(2) == 0) {
    s->gate.close();
    channel->unlist(s);
    if (engine::close_deferred(*s)) engine::destroy_captures(*s);
  } else {
    s->gate.close();
    channel->unlist(s);
    if (engine::wait_uncalled(*s, -1) == engine::Gate::Waited::claimed)
      engine::destroy_captures(*s);
    expect(living.load() == 0, "captures live on after the detaching returned");
  }
  engine::drop_subscriber(s);
  check.await(4);
  threads.join();
  crew.stop();
  expect(living.load() == 0, "captures live on after the bus has stopped");
}

/// The newest are heard, in order; what is left out is counted.
void evicts() {
  Crew crew(1);
  const auto channel = crew.channel();
  Atomic<std::uint64_t> heard{0}, last{0};
  const AttachedSubscriber attached(*channel, [&](const Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      expect(n > last.load(), "an event is out of order or doubled");
      last.store(n);
      heard.fetch_add(1);
    }
  });
  LaneOptions o = lane_options(1 + static_cast<std::uint32_t>(choose(2)));
  o.overflow = engine::Overflow::drop_oldest;
  Lane& lane = lane_of(*channel, o);
  std::uint64_t accepted = 0, newest = 0;
  Threads threads;
  threads.start([&] {
    for (std::uint64_t n = 1; n <= 6; ++n) {
      const Pushed result = say(lane, n);
      expect(result == Pushed::accepted || result == Pushed::full, "an event is refused");
      expect(lane.published() - lane.consumed.load() <= o.room(),
             "more than its room is in a lane");
      if (result != Pushed::accepted) continue;
      ++accepted;
      newest = n;
    }
  });
  threads.join();
  expect(crew->flush(-1), "flush() gave up");
  expect(heard.load() + lane.undelivered.evicted.load() == accepted,
         "accepted is not heard and evicted");
  expect(last.load() == newest, "the newest is left out");
}

/// A thread that waits for a round gets one at once, though the housekeeper sleeps for a second at
/// a time.
void house() {
  Crew crew(1, true);
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  Threads threads;
  threads.start([&, lane = &lane_of(*channel, lane_options())] {
    for (std::uint64_t n = 1; n <= 2; ++n)
      expect(say(*lane, number(0, n)) == Pushed::accepted, "an event is refused");
  });
  for (int round = 0; round < 2; ++round) {
    const std::int64_t began = engine::now_ns();
    expect(crew->house().await_round(-1), "there is no housekeeper");
    expect(engine::now_ns() - began < 500'000'000, "the housekeeper sleeps though it is notified");
  }
  check.await(2);
}

}  // namespace ringmain::interleave
