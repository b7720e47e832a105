// Question: can the last wake-up be lost under the C++11 memory model?
//
// Dekker core of the eventcount: the publisher stores tail, then checks waiters; the worker
// announces itself, then re-checks tail. Full search over all executions.
//   default         a seq_cst fence on both sides                                 holds
//   -DNO_FENCE      no seq_cst edge on either side                                a wake-up is lost
//   -DRMW           no fence; the publisher reads waiters by an RMW that adds nothing      holds
//   -DRMW -DRELAXED that RMW is relaxed                                           a wake-up is lost
#include <relacy/relacy.hpp>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif
#ifdef RELAXED
constexpr rl::memory_order kLook = rl::mo_relaxed;
#else
constexpr rl::memory_order kLook = rl::mo_seq_cst;
#endif
#if defined(RMW) || defined(NO_FENCE)
#define EDGE() (void)0
#else
#define EDGE() rl::atomic_thread_fence(rl::mo_seq_cst, $)
#endif

struct Test : rl::test_suite<Test, 2> {
  rl::atomic<int> tail, waiters;
  rl::var<int> payload;
  bool parked = false, woken = false;

  void before() {
    tail($).store(0, rl::mo_relaxed);
    waiters($).store(0, rl::mo_relaxed);
  }
  void publisher() {
    payload($) = 42;
    tail($).store(1, rl::mo_release);
    EDGE();
#ifdef RMW
    if (waiters($).fetch_add(0, kLook)) woken = true;
#else
    if (waiters($).load(rl::mo_relaxed)) woken = true;
#endif
  }
  void worker() {
    waiters($).fetch_add(1, rl::mo_seq_cst);
    EDGE();
    if (tail($).load(rl::mo_acquire) == 0) {
      parked = true;
    } else {
      RL_ASSERT(payload($) == 42);
    }
  }
  void thread(unsigned i) {
    i == 0 ? publisher() : worker();
  }
  void after() {
    RL_ASSERT(!(parked && !woken));
  }
};

int main() {
  rl::test_params p;
  p.iteration_count = 20000;
  p.search_type = rl::fair_full_search_scheduler_type;
  std::ostream nowhere(nullptr);
  p.output_stream = p.progress_stream = &nowhere;
  bool ok = rl::simulate<Test>(p);
  if (ok)
    std::cout << "holds: every execution, " << p.stop_iteration << " iterations\n";
  else
    std::cout << "fails: " << rl::test_result_str(p.test_result) << " at iteration "
              << p.stop_iteration << "\n";
  return !ok;
}
