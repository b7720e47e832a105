// Question: are the memory orders of engine/subscribe/gate.hpp enough under the C++ memory model?
//
// The real Gate, compiled with relacy_atomics.hpp, three threads. The captures are a plain
// variable: each call reads it, destroying writes it. Scenes:
//   1 outside    two workers | reset() outside: it waits
//   2 inside     two workers, a callback of the first resets its own subscription | wait later
//   3 together   a worker | two threads reset() the same subscription outside
//   4 elsewhere  a worker | a callback of another subscription resets this one | wait later
// Checked: no data race between calls, destroying and what the waiter does next; destroyed once; no
// call after the wait; nobody sleeps for ever.
// Mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include "engine/subscribe/gate.cpp"

using ringmain::engine::Gate;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 4;
  Gate gate;
  rl::var<int> captures;  // 1 alive, 0 destroyed
  int destroyed = 0;      // the test's, outside the memory model

  void before() { captures($) = 1; }

  void destroy() {
    RL_ASSERT(++destroyed == 1);
    captures($) = 0;
    gate.gone();
  }
  void reset_inside() {
    if (gate.close_deferred()) destroy();
  }
  void reset_outside() {  // and to wait later
    gate.close();
    if (gate.wait(-1) == Gate::Waited::claimed) destroy();
    RL_ASSERT(destroyed == 1);
    RL_ASSERT(captures($) == 0);
  }
  void dispatch(bool resets_itself) {
    if (gate.enter()) {
      for (int event = 0; event < 2 && !gate.closed(); ++event) {
        RL_ASSERT(captures($) == 1);
        if (resets_itself) reset_inside();
        RL_ASSERT(captures($) == 1);
      }
    }
    if (gate.leave()) destroy();
  }
  void work(bool resets_itself) {
    dispatch(resets_itself);
    dispatch(false);
  }

  void thread(unsigned i) {
    if (i == 0) return work(scene == 2);
    if (i == 2 || scene == 3) return reset_outside();
    if (scene == 4) return reset_inside();
    work(false);
  }
  void after() { RL_ASSERT(destroyed == 1); }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
