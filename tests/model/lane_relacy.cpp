// Question: are the memory orders of the lane protocol enough under the C++ memory model?
//
// lane_core.hpp with Relacy's atomics, three threads. Scenes:
//   1 triangle   a publisher of 3 events on a ring of 2 | a worker that parks | stop() at any time
//   2 hand-over  a publisher of 3 events, then stop() | two workers that pass the lease or park
//   3 reuse      two publishers, one lane: each waits until it has it; the second stops | a worker
//   4 flush      a publisher of 2 events, then flush() | a worker | stop() at any time
//   5 alone      a publisher of 3 events | two workers; nobody helps, the last callback ends it
//   6 closing    a publisher of 3 events | a worker | a stop() that gets no further than its store
// Checked: no data race on slots, on the callback's state or on the lane's publisher; each event
// once, in order, for its publisher; nothing accepted is lost; nobody sleeps for ever (deadlock).
// Forms and mutants: see relacy_search.hpp; the sites are named in lane_core.hpp.
#include "tests/model/relacy_search.hpp"
//
#include "tests/model/lane_core.hpp"

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 6;
  using P = RelacyAtomics;
  using Lane = Core<P, 2>;
  Lane core;
  rl::var<int> delivered;                   // the callback's own state: plain
  int accepted = 0, at_stop = 0, took = 0;  // the test's, outside the memory model

  void before() {
    for (auto* w : {&core.mode, &core.leased, &core.lane, &core.live, &core.consumed, &core.signals,
                    &core.passed, &core.idle, &core.key[0], &core.key[1], &core.quit, &core.waiters,
                    &core.done_key})
      (*w)($).store(0, rl::mo_relaxed);
    core.publisher($) = 1;
    delivered($) = 0;
  }
  void work(int w, bool passes) {
    core.work(w, passes, [&](int index, rl::var<int>& slot, rl::var<int>& publisher) {
      RL_ASSERT(delivered($) == index);  // in order, once, one at a time
      int event = slot($);
      RL_ASSERT(event % 100 == index);
      RL_ASSERT(event / 100 == publisher($));
      delivered($) = index + 1;
      if (scene == 5 && index == 2) {
        at_stop = 3;
        core.dismiss();
      }
    });
  }
  void publish(Lane::Publishing& own, int who) {
    if (core.publish(own, 100 * who + own.published) == Lane::accepted) ++accepted;
  }
  void stop(bool and_dismiss) {
    core.stop();
    at_stop = delivered($);
    if (and_dismiss) core.dismiss();
  }

  void triangle(int i) {
    Lane::Publishing own;
    if (i == 0) {
      for (int k = 0; k < 3; ++k) publish(own, 1);
    } else if (i == 1) {
      work(0, false);
    } else {
      stop(true);
    }
  }
  void hand_over(int i) {
    Lane::Publishing own;
    if (i == 0) {
      for (int k = 0; k < 3; ++k) publish(own, 1);
      stop(true);
    } else {
      work(i - 1, i == 1);
    }
  }
  void reuse(int i) {
    Lane::Publishing own;
    if (i == 2) return work(0, false);
    while (!core.acquire_lane(own, i + 1)) P::pause($);
    publish(own, i + 1);
    publish(own, i + 1);
    core.release_lane();
    ++took;
    if (i == 1) {
      while (took < 2) P::pause($);
      stop(true);
    }
  }
  void flush(int i) {
    Lane::Publishing own;
    if (i == 0) {
      publish(own, 1);
      publish(own, 1);
      core.flush();
      RL_ASSERT(delivered($) == own.published);
      core.dismiss();
    } else if (i == 1) {
      work(0, false);
    } else {
      stop(false);
    }
  }
  void alone(int i) {
    Lane::Publishing own;
    if (i != 0) return work(i - 1, i == 1);
    while (own.published < 3) publish(own, 1);
  }
  void closing(int i) {
    Lane::Publishing own;
    if (i == 0) {
      for (int k = 0; k < 3; ++k) publish(own, 1);
      while (core.consumed($).load(rl::mo_acquire) != accepted) P::pause($);
      at_stop = accepted;
      core.dismiss();
    } else if (i == 1) {
      work(0, false);
    } else {
      core.mode($).store(Lane::closing, rl::mo_relaxed);
    }
  }
  void thread(unsigned thread_index) {
    int i = static_cast<int>(thread_index);
    if (scene == 1) triangle(i);
    if (scene == 2) hand_over(i);
    if (scene == 3) reuse(i);
    if (scene == 4) flush(i);
    if (scene == 5) alone(i);
    if (scene == 6) closing(i);
  }
  void after() {  // nothing accepted is lost, nothing is accepted after stop() has returned
    RL_ASSERT(at_stop == accepted);
    RL_ASSERT(delivered($) == accepted);
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
