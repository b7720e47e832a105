// Question: may publishing threads read the row of inline subscribers, nested and at once, while
// these leave; and which thread destroys the captures?
//
// The real show_inline(), RetireList, SubscriberList, Gate and what shows calls, compiled with
// relacy_atomics.hpp.
// Two publishing threads with two words each, as lanes have them, and a third thread. Scenes:
//   1 outside   both publish twice | a subscriber comes, another is reset outside: it waits
//   2 inside    the first call resets its own subscription | somebody reclaims until both are done
//   3 nested    each call publishes again, one level deeper | as 1
//   4 stop      as 2 | the retire list is closed, some time after the reset
//   5 later     as 2 | waits for the deferred one; nobody reclaims before
// Checked: no row that is read is freed; no data race between calls, destroying and what the waiter
// does next; captures are destroyed once, and by no publishing thread while somebody may reclaim;
// no call after the wait; nobody sleeps for ever; in the end nothing is left. Forms and mutants:
// see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include <algorithm>
#include <vector>

#include "engine/publish/inline_phase.cpp"
#include "engine/subscribe/call_cells.cpp"
#include "engine/subscribe/gate.cpp"
#include "engine/subscribe/retire_list.cpp"
#include "engine/subscribe/shown.cpp"
#include "engine/subscribe/snapshot.cpp"
#include "engine/subscribe/subscriber.cpp"

using ringmain::engine::ChunkPlace;
using ringmain::engine::Gate;
using ringmain::engine::Judgement;
using ringmain::engine::Reading;
using ringmain::engine::RetireList;
using ringmain::engine::Shown;
using ringmain::engine::ShownCalls;
using ringmain::engine::Snapshot;
using ringmain::engine::Subscriber;
using ringmain::engine::SubscriberList;

// Relacy has its own heap, and forgets that memory may be given back by its size as well.
void operator delete(void* p, std::size_t) noexcept {
  operator delete(p);
}

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 5;
  enum : int { kRows = 4, kSubscribers = 3, kLevels = 2 };
  struct Call {
    int thread, level;
  };
  struct Captures {
    Test* test;
    int index;
  };

  /// The words of both lanes, which are there from the start.
  struct Words final : ShownCalls {
    Shown word[2 * kLevels] = {nullptr, nullptr, nullptr, nullptr};
    bool calling(const Subscriber& one) const noexcept override {
      for (const Shown& w : word) {
        if (w.load(std::memory_order_acquire) == &one) return true;
      }
      return false;
    }
    void keep() const noexcept override {}
    void let_go() const noexcept override {}
  };

  SubscriberList list;
  RetireList retire_list;
  Words words;
  Reading reading[2 * kLevels] = {nullptr, nullptr, nullptr, nullptr};
  rl::var<int> room[kRows];             // each row's memory: 1 built, 0 freed
  rl::var<int> captures[kSubscribers];  // 1 alive, 0 destroyed
  rl::atomic<int> finished, has_reset;
  // The test's own, outside the memory model.
  Subscriber* made[kSubscribers] = {};
  const Snapshot* rows[kRows] = {};
  int count = 0, destroyed = 0, running = 0;
  bool freed[kRows] = {};
  bool reset = false;

  void before() {
    finished($).store(0, rl::mo_relaxed);
    has_reset($).store(0, rl::mo_relaxed);
    add(0);
    add(1);
  }
  void after() {
    retire_list.reclaim_all();
    if (reset) RL_ASSERT(destroyed == 1);
    for (Reading& r : reading) RL_ASSERT(r.latest() == nullptr);
    for (Shown& w : words.word) RL_ASSERT(w.latest() == nullptr);
    list.reclaim({});
    for (Subscriber* s : made) {
      if (s != nullptr) ringmain::engine::drop_subscriber(s);
    }
  }

  // --- the changer, under the channel's lock: one thread in each scene ---
  void note() { rows[count++] = list.current().latest(); }
  void add(int i) {
    if (count < kRows) room[count]($) = 1;
    Subscriber* one = ringmain::engine::make_subscriber(sizeof(Captures));
    ::new (one->captures()) Captures{this, i};
    captures[i]($) = 1;
    one->judge = [](Subscriber& self, const std::byte* event) noexcept -> Judgement {
      const auto& c = *static_cast<const Captures*>(self.captures());
      c.test->called(self, c.index, *reinterpret_cast<const Call*>(event));
      return {};
    };
    one->destroy = [](Subscriber& self) noexcept {
      const auto& c = *static_cast<const Captures*>(self.captures());
      c.test->destroy(c.index);
    };
    one->holders.fetch_add(1, std::memory_order_relaxed);  // its handle
    one->shown_by = &words;
    made[i] = one;
    list.add(one);
    note();
  }
  void remove(Subscriber& one) {
    room[count]($) = 1;
    RL_ASSERT(list.remove(&one));
    note();
    list.reclaim({&reading[0], &reading[1], &reading[2], &reading[3]});
    for (int n = 0; n < count - 1; ++n) {
      const bool given_out_again = std::find(rows + n + 1, rows + count, rows[n]) != rows + count;
      if (freed[n] || (list.keeps(rows[n]) && !given_out_again)) continue;
      room[n]($) = 0;
      freed[n] = true;
    }
  }
  void reset_outside(Subscriber& one) {
    one.gate.close();
    remove(one);
    if (ringmain::engine::wait_uncalled(one, -1) == Gate::Waited::claimed)
      ringmain::engine::destroy_captures(one);
    RL_ASSERT(destroyed == 1);
    RL_ASSERT(captures[0]($) == 0);
  }

  // --- publishing threads ---
  /// The newest that lay at this address: is it there still? The changer may be about to note it.
  int number_of(const Snapshot* row) const {
    int n = count - 1;
    while (n >= 0 && rows[n] != row) --n;
    if ((n < 0 || freed[n]) && list.current().latest() == row) n = count;
    RL_ASSERT(n >= 0 && (n == count || !freed[n]));
    return n;
  }
  void look(int index, const Call& call) {
    RL_ASSERT(room[number_of(reading[kLevels * call.thread + call.level].latest())]($) == 1);
    RL_ASSERT(captures[index]($) == 1);
  }
  void called(Subscriber& self, int index, const Call& call) {
    look(index, call);
    const bool resets = scene == 2 || scene >= 4;
    if (resets && index == 0 && !reset) {
      reset = true;
      self.gate.close();
      remove(self);
      RL_ASSERT(!ringmain::engine::close_deferred(self));
      has_reset($).store(1, rl::mo_release);
    }
    if (scene == 3 && call.level == 0) publish(call.thread, 1);
    look(index, call);
  }
  /// Where nobody waits, as a realtime publisher does: the system call would be a fence.
  static bool wakes() { return scene != 2 && scene != 4; }
  void publish(int thread, int level) {
    const Call call{thread, level};
    const int at = kLevels * thread + level;
    (void)ringmain::engine::show_inline(
        list.current(), {reading[at], words.word[at], ChunkPlace::of(0)}, retire_list,
        reinterpret_cast<const std::byte*>(&call), wakes());
  }
  void destroy(int index) {
    RL_ASSERT(++destroyed == 1);
    RL_ASSERT(scene == 4 || rl::thread_index() == 2);
    captures[index]($) = 0;
  }

  void thread(unsigned i) {
    if (i < 2) {
      for (int n = scene == 3 ? 1 : 2; n > 0; --n) publish(static_cast<int>(i), 0);
      finished($).fetch_add(1, rl::mo_acq_rel);
      return;
    }
    if (scene == 1 || scene == 3) {
      add(2);
      return reset_outside(*made[0]);
    }
    if (scene >= 4) {
      while (has_reset($).load(rl::mo_acquire) == 0) rl::yield(1, $);
    }
    if (scene == 4) return retire_list.close();
    if (scene == 5) {
      if (ringmain::engine::wait_uncalled(*made[0], -1) == Gate::Waited::claimed)
        ringmain::engine::destroy_captures(*made[0]);
      RL_ASSERT(captures[0]($) == 0);
      return;
    }
    while (finished($).load(rl::mo_acquire) != 2) {
      retire_list.reclaim_all();
      rl::yield(1, $);
    }
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
