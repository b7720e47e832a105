// Scenarios: is anybody still inside after the wait, while threads come, go and end, a process was
// forked, and signal handlers enter too?
#include "engine/system/presence.hpp"

#include <array>
#include <cstddef>
#include <memory>

#include "engine/system/fork.hpp"
#include "engine/system/thread_exit.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

using engine::Presence;
using Waited = Presence::Waited;

enum : std::size_t { kThreads = 3 };

/// Freed when nobody is inside any more: whoever still uses it touches freed memory.
struct Guarded {
  std::array<Atomic<std::uint32_t>, kThreads> uses{};
};

/// Records are never given back, so that each schedule has a presence of its own and they are left.
struct Door {
  Presence presence;
  Atomic<Guarded*> open{nullptr};
  std::array<std::uint32_t, kThreads> used{};  // what `uses` must show after the wait

  void use(std::size_t me) {
    Guarded* const guarded = open.load(std::memory_order_acquire);
    if (guarded == nullptr) return;
    // Relaxed: it is leaving that shows it to the thread that waits.
    guarded->uses[me].store(++used[me], std::memory_order_relaxed);
  }
  void enter() { expect(presence.enter(), "a thread is not let in"); }
  void pass(std::size_t me) {
    enter();
    const bool nested = choose(3) == 0;
    if (nested) enter();
    use(me);
    if (nested) {
      presence.leave();
      use(me);
    }
    presence.leave();
  }
  void close() {
    const std::unique_ptr<Guarded> guarded(open.load(std::memory_order_acquire));
    open.store(nullptr, std::memory_order_release);
    expect(presence.wait_until_none(-1) == Waited::none_inside, "a wait without a limit ends");
    for (std::size_t i = 0; i < kThreads; ++i)
      expect(guarded->uses[i].load() == used[i], "what was done inside is not seen after the wait");
  }
  void open_anew() {
    used = {};
    open.store(new Guarded, std::memory_order_release);
  }
};

/// A door whose records are left when it goes.
class Doorway {
 public:
  explicit Doorway(std::size_t records_max) : records_max_(records_max) { door_->open_anew(); }
  Doorway(const Doorway&) = delete;
  Doorway& operator=(const Doorway&) = delete;
  ~Doorway() {
    door_->close();
    door_.reset();
    const std::size_t records = live_blocks() - before_;
    expect(records <= records_max_, "a record is not taken again");
    keep_blocks(records);
  }
  Door* operator->() const { return door_.get(); }
  Door& operator*() const { return *door_; }

 private:
  const std::size_t records_max_;
  const std::size_t before_ = live_blocks();
  std::unique_ptr<Door> door_ = std::make_unique<Door>();
};

/// Its destructor runs after the thread's records are gone, if it is registered before they are.
struct Late {
  Door* door;
  std::size_t me;
  static void call(void* with) {
    const auto& late = *static_cast<Late*>(with);
    const InHandlersReach reach([&late] {
      if (late.door->presence.enter()) late.door->presence.leave();
    });
    late.door->pass(late.me);
  }
};

void begin_as_a_forked_child(Door& door) {
  if (choose(2) != 0) return;
  // Before the first entry: it runs after the end of the thread's records.
  at_fiber_exit([](void*) { engine::forks.store(0, std::memory_order_relaxed); }, nullptr);
  Threads before;
  before.start([&door] { door.pass(1); });
  before.join();
  const bool inside = choose(2) == 0;
  if (inside) door.enter();
  engine::forks.store(1, std::memory_order_relaxed);
  expect(!door.presence.inside(), "in a child nobody is inside");
  if (inside) door.presence.leave();  // of the parent's entry: nothing
}

}  // namespace

/// Threads come and go while the door is closed, opened and closed again.
void presence() {
  const Doorway door(2);
  Threads threads;
  for (std::size_t me = 0; me < 2; ++me) {
    threads.start([&door, me] {
      const std::uint64_t times = 1 + choose(3);
      for (std::uint64_t i = 0; i < times; ++i) door->pass(me);
    });
  }
  if (choose(2) == 0) {
    threads.start([&door] {  // waits too, perhaps not for long
      const std::int64_t limit_ns = choose(2) == 0 ? -1 : 40;
      const Waited waited = door->presence.wait_until_none(limit_ns);
      expect(limit_ns >= 0 || waited == Waited::none_inside, "a wait without a limit ends");
    });
  }
  door->close();
  door->open_anew();
  if (choose(2) == 0) threads.join();
}

/// A thread that was waited for comes back at once, and is not waited for again.
void presence_once() {
  const Doorway door(1);
  Atomic<std::uint32_t> closed{0}, inside{0};
  Threads threads;
  threads.start([&] {
    door->enter();
    inside.store(1);
    engine::futex_wake(inside, 1);
    while (!first_sleeps()) engine::pause();
    door->presence.leave();
    door->enter();
    while (closed.load() == 0) (void)engine::futex_wait(closed, 0);
    door->presence.leave();
  });
  while (inside.load() == 0) (void)engine::futex_wait(inside, 0);
  door->close();
  closed.store(1);
  engine::futex_wake(closed, 1);
  threads.join();
  door->open_anew();
}

/// Threads end inside and outside, take each other's records, and enter once more after their end.
void presence_ends() {
  const bool in_turn = choose(3) == 0;
  const Doorway door(in_turn ? 2 : 2 + kThreads);  // one may be the parent's
  begin_as_a_forked_child(*door);
  std::array<Late, kThreads> late{};
  Threads threads;
  for (std::size_t me = 0; me < kThreads; ++me) {
    late[me] = {&*door, me};
    threads.start([&door, &late, me] {
      if (choose(2) == 0) at_fiber_exit(&Late::call, &late[me]);
      const InHandlersReach reach([&door] {
        if (door->presence.enter()) door->presence.leave();
      });
      const std::uint64_t times = choose(3);
      for (std::uint64_t i = 0; i < times; ++i) door->pass(me);
      if (choose(3) != 0) return;
      door->enter();  // and never leaves
      door->use(me);
    });
    if (in_turn) threads.join();
  }
  door->close();
  door->open_anew();
  threads.join();
}

/// Records are handed on with as little beside it as can be: orders of stores that seldom come.
void presence_handed_on() {
  const Doorway door(2);
  const bool for_one_entry = choose(2) == 0;
  if (for_one_entry) refuse_keys();
  Threads threads;
  for (std::size_t me = 0; me < 2; ++me) {
    threads.start([&door, for_one_entry, me] {
      door->enter();
      door->use(me);
      if (for_one_entry) door->presence.leave();  // else its end says so
    });
  }
  door->close();
  door->open_anew();
}

/// Several threads ask at once to be told of their ends.
void exit_key() {
  const auto told = [](void* with) { static_cast<Atomic<std::uint32_t>*>(with)->fetch_add(1); };
  const auto ends = std::make_unique<engine::ThreadExit>(told);
  std::array<Atomic<std::uint32_t>, kThreads> times{};
  Threads threads;
  for (Atomic<std::uint32_t>& mine : times)
    threads.start([&ends, &mine] { expect(ends->ask(&mine), "a thread's end is not told"); });
  threads.join();
  for (const Atomic<std::uint32_t>& each : times)
    expect(each.load() == 1, "a thread's end is told once");
  expect(delete_keys(told) == 1, "a key is left over");
}

}  // namespace ringmain::interleave
