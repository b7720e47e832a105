// Question: are the memory orders of engine/snapshot.* enough under the C++ memory model?
//
// The real SubscriberList and protect(), compiled with relacy_atomics.hpp. Scenes:
//   1 a worker, three batches | a changer that adds and removes, and reclaims after each change
//   2 two workers, two batches each | the same changer
//   3 as 1, but the worker shows nothing between batches, as when it parks
// Checked: no snapshot and no subscriber that a worker uses is freed; no data race between building
// one, using it and freeing it; in the end, the workers gone, one reclaim() frees all that was
// retired; nothing leaks (Relacy's heap, which also gives addresses out again).
// Forms and mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include <algorithm>
#include <vector>

#include "engine/subscribe/call_cells.cpp"
#include "engine/subscribe/gate.cpp"
#include "engine/subscribe/snapshot.cpp"
#include "engine/subscribe/subscriber.cpp"

using ringmain::engine::Reading;
using ringmain::engine::Snapshot;
using ringmain::engine::Subscriber;
using ringmain::engine::SubscriberList;

// Relacy has its own heap, and forgets that memory may be given back by its size as well.
void operator delete(void* p, std::size_t) noexcept {
  operator delete(p);
}

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 3;
  enum : int { kSnapshots = 5 };
  SubscriberList list;
  Reading reading[2] = {nullptr, nullptr};
  rl::var<int> room[kSnapshots];  // each snapshot's memory: 1 built, 0 freed
  rl::atomic<int> gone;
  // The test's own, outside the memory model: all that were current, in order, and what was freed.
  const Snapshot* made[kSnapshots] = {};
  int count = 0;
  bool freed[kSnapshots] = {};

  void before() {
    gone($).store(0, rl::mo_relaxed);
    add(0);
  }

  void note() { made[count++] = list.current().latest(); }
  void add(int i) {
    room[count]($) = 1;
    Subscriber* one = ringmain::engine::make_subscriber(0);
    one->priority = -i;
    one->watch_id = static_cast<std::uint32_t>(i);
    list.add(one);
    note();
  }
  void remove(int i) {
    Subscriber* one = made[count - 1]->subscribers.front();
    RL_ASSERT(one->watch_id == static_cast<std::uint32_t>(i));
    room[count]($) = 1;
    RL_ASSERT(list.remove(one));
    note();
  }
  void reclaim() {
    list.reclaim({&reading[0], &reading[1]});
    for (int n = 0; n < count - 1; ++n) {
      const bool given_out_again = std::find(made + n + 1, made + count, made[n]) != made + count;
      if (freed[n] || (list.keeps(made[n]) && !given_out_again)) continue;
      room[n]($) = 0;
      freed[n] = true;
    }
  }

  // As current_snapshot() in engine/deliver/drain.cpp.
  const Snapshot* current_snapshot(Reading& mine) {
    const Snapshot* now = list.current().load(std::memory_order_acquire);
    if (now == mine.load(std::memory_order_relaxed)) return now;
    return ringmain::engine::protect(list.current(), mine);
  }
  /// The newest that lay at this address: is it there still? The changer may be about to note it.
  int number_of(const Snapshot* snapshot) {
    int n = count - 1;
    while (n >= 0 && made[n] != snapshot) --n;
    if ((n < 0 || freed[n]) && list.current().latest() == snapshot) n = count;
    RL_ASSERT(n >= 0 && (n == count || !freed[n]));
    return n;
  }
  void use(const Snapshot* snapshot) {
    const int number = number_of(snapshot);
    for (Subscriber* s : snapshot->subscribers) {
      RL_ASSERT(room[number]($) == 1);
      RL_ASSERT(s->gate.enter());
      (void)s->gate.leave();
      RL_ASSERT(number == number_of(snapshot));
    }
  }
  void work(int w, int batches) {
    for (int k = 0; k < batches; ++k) {
      use(current_snapshot(reading[w]));
      if (scene == 3) reading[w].store(nullptr, std::memory_order_release);
    }
    reading[w].store(nullptr, std::memory_order_release);
    gone($).fetch_add(1, rl::mo_acq_rel);
  }
  void change() {
    add(1);
    reclaim();
    remove(0);
    reclaim();
    add(2);
    remove(1);
    reclaim();
    while (gone($).load(rl::mo_acquire) != (scene == 2 ? 2 : 1)) rl::yield(1, $);
    reclaim();
    RL_ASSERT(list.retired() == 0);
  }
  void thread(unsigned i) {
    if (i == 2) return change();
    if (scene == 2) return work(static_cast<int>(i), 2);
    if (i == 0) work(0, 3);
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
