// Question: are the memory orders enough by which a worker calls one that is called often, though
// it leaves?
//
// The real enter_call() and leave_call(), Gate and what asks for shown calls, compiled with
// relacy_atomics.hpp. Three threads; the first counted call biases the subscriber. The captures are
// a plain variable: each call reads it, destroying writes it. Scenes:
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
#include "engine/subscribe/call_cells.cpp"
#include "engine/subscribe/gate.cpp"
#include "engine/subscribe/shown.cpp"
#include "engine/subscribe/subscriber.cpp"
#include "engine/subscribe/worker_calls.cpp"

using ringmain::engine::Entered;
using ringmain::engine::Gate;
using ringmain::engine::Shown;
using ringmain::engine::ShownCalls;
using ringmain::engine::Subscriber;

// Relacy has its own heap, and forgets that memory may be given back by its size as well.
void operator delete(void* p, std::size_t) noexcept {
  operator delete(p);
}

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 4;

  /// The words of both workers.
  struct Words final : ShownCalls {
    Shown word[2] = {nullptr, nullptr};
    bool calling(const Subscriber& one) const noexcept override {
      for (const Shown& w : word) {
        if (w.load(std::memory_order_acquire) == &one) return true;
      }
      return false;
    }
    void keep() const noexcept override {}
    void let_go() const noexcept override {}
  };

  Words words;
  Subscriber* one = nullptr;
  rl::var<int> captures;  // 1 alive, 0 destroyed
  // The test's own, outside the memory model.
  int destroyed = 0;

  void before() {
    captures($) = 1;
    one = ringmain::engine::make_subscriber(sizeof(Test*));
    ::new (one->captures()) Test*(this);
    one->shown_by = &words;
    one->destroy = [](Subscriber& self) noexcept {
      Test& test = **static_cast<Test**>(self.captures());
      RL_ASSERT(++test.destroyed == 1);
      test.captures($) = 0;
    };
  }
  void after() {
    RL_ASSERT(destroyed == 1);
    for (Shown& w : words.word) RL_ASSERT(w.latest() == nullptr);
    ringmain::engine::drop_subscriber(one);
  }

  void reset_inside() {
    if (ringmain::engine::close_deferred(*one)) ringmain::engine::destroy_captures(*one);
  }
  void reset_outside() {  // and to wait later
    one->gate.close();
    if (ringmain::engine::wait_uncalled(*one, -1) == Gate::Waited::claimed)
      ringmain::engine::destroy_captures(*one);
    RL_ASSERT(destroyed == 1);
    RL_ASSERT(captures($) == 0);
  }
  void dispatch(unsigned worker, bool resets_itself) {
    Shown& mine = words.word[worker];
    const Entered entered = ringmain::engine::enter_call(*one, mine);
    if (entered == Entered::counted) one->gate.bias();
    if (entered != Entered::refused) {
      for (int event = 0; event < 2 && !one->gate.closed(); ++event) {
        RL_ASSERT(captures($) == 1);
        if (resets_itself) reset_inside();
        RL_ASSERT(captures($) == 1);
      }
    }
    if (ringmain::engine::leave_call(*one, mine, entered)) ringmain::engine::destroy_captures(*one);
  }
  void work(unsigned worker, bool resets_itself) {
    dispatch(worker, false);
    dispatch(worker, resets_itself);
  }

  void thread(unsigned i) {
    if (i == 0) return work(0, scene == 2);
    if (i == 2 || scene == 3) return reset_outside();
    if (scene == 4) return reset_inside();
    work(1, false);
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
