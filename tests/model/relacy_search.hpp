// How does a protocol core run under Relacy?
//
// RelacyAtomics is the atomics policy of the cores: Relacy's atomics, futex words that never wake
// spuriously, and the two sides of a store-load edge. In the membarrier form
// asymmetric_fence_light() is nothing and asymmetric_fence_heavy() a seq_cst fence passed by one
// thread after another where it stands (relacy_cxx20.py makes Relacy do that); in the fence form
// both are seq_cst fences of the thread itself.
//
// search_scenes() is the main() of a test: SCENES SCHEDULES [WORD ...], for example "12345 60000
// fence". The schedules are random, and the same ones at each run. Words:
//   fence            the fence form
// and the mutants
//   no_heavy         asymmetric_fence_heavy() is nothing
//   no_light[=l.closing]    asymmetric_fence_light(), or only this one, is nothing in the fence
//   form too relaxed=x[+y]    these sites of a core are relaxed, and every access written in
//   functions of acquire=x[+y]    these names, where a core has none; acquire= leaves a load that
//   much, and acq_rel=x[+y]    acq_rel= a read-modify-write
#pragma once

#include <algorithm>
#include <cstdlib>
#include <relacy/relacy.hpp>
#include <string_view>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif
#define HERE $

/// What the words of the command line chose.
struct Form {
  bool fence = false, heavy = true;
  std::string_view no_light, relaxed, acquire, acq_rel;  // none: empty; all of them: "*"
};
inline Form form;

/// Is `name` one of the names in "x+y"?
inline bool listed(std::string_view list, std::string_view name) {
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t to = std::min(list.find('+', from), list.size());
    if (list == "*" || list.substr(from, to - from) == name) return true;
    from = to + 1;
  }
  return false;
}

inline bool take_word(std::string_view word) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view key = word.substr(0, equals);
  const std::string_view list = equals < word.size() ? word.substr(equals + 1) : "*";
  if (key == "fence") {
    form.fence = true;
  } else if (key == "no_heavy") {
    form.heavy = false;
  } else if (key == "no_light") {
    form.no_light = list;
  } else if (key == "relaxed") {
    form.relaxed = list;
  } else if (key == "acquire") {
    form.acquire = list;
  } else if (key == "acq_rel") {
    form.acq_rel = list;
  } else {
    return false;
  }
  return true;
}

/// The order of an access at this site or in this function, as the words want it.
inline rl::memory_order weakened(std::string_view site, rl::memory_order order) {
  if (listed(form.relaxed, site)) return rl::mo_relaxed;
  if (listed(form.acquire, site)) return rl::mo_acquire;
  if (listed(form.acq_rel, site)) return rl::mo_acq_rel;
  return order;
}

struct RelacyAtomics {
  using Word = rl::atomic<int>;
  using Plain = rl::var<int>;
  using At = rl::debug_info_param;
  static constexpr rl::memory_order relaxed = rl::mo_relaxed, acquire = rl::mo_acquire,
                                    release = rl::mo_release, acq_rel = rl::mo_acq_rel,
                                    seq_cst = rl::mo_seq_cst;

  static int load(Word& x, rl::memory_order o, At at) { return x.load(o, at); }
  static void store(Word& x, int v, rl::memory_order o, At at) { x.store(v, o, at); }
  static int exchange(Word& x, int v, rl::memory_order o, At at) { return x.exchange(v, o, at); }
  static int fetch_add(Word& x, int v, rl::memory_order o, At at) { return x.fetch_add(v, o, at); }
  static int fetch_or(Word& x, int v, rl::memory_order o, At at) { return x.fetch_or(v, o, at); }
  static bool compare_exchange(Word& x, int& expected, int v, rl::memory_order o, At at) {
    return x.compare_exchange_strong(expected, v, o, at);
  }
  static void set(Plain& x, int v, At at) { x(at) = v; }
  static void pause(At at) { rl::yield(1, at); }

  static rl::memory_order order(std::string_view site, rl::memory_order o) {
    return weakened(site, o);
  }
  static void light_fence(std::string_view name, At at) {
    if (form.fence && !listed(form.no_light, name)) rl::atomic_thread_fence(rl::mo_seq_cst, at);
  }
  static void heavy_fence(At at) {
    if (!form.heavy) return;
    if (form.fence) {
      rl::atomic_thread_fence(rl::mo_seq_cst, at);
    } else {
      rl::systemwide_fence(at);
    }
  }

  // As Relacy's own futex, but never spurious: what sleeps for ever must show as a deadlock.
  template <class T>
  static void futex_wait(rl::atomic<T>& x, T key, At at) {
    rl::context& c = rl::ctx();
    c.sched();
    c.atomic_thread_fence_seq_cst();
    T now;
    {
      rl::preemption_disabler whole(c);
      now = x.load(rl::mo_acquire, at);
    }
    if (now == key) x.wait(c, false, false, at);
  }
  template <class T>
  static void futex_wake(rl::atomic<T>& x, int count, At at) {
    rl::context& c = rl::ctx();
    c.sched();
    c.atomic_thread_fence_seq_cst();
    x.wake(c, static_cast<rl::thread_id_t>(count), at);
  }
};

inline int scene = 1;  // which one the present search plays

template <class Test>
int search_scenes(int argc, char** argv) {
  bool known = argc >= 3 && std::atol(argv[2]) > 0;
  for (int i = 3; i < argc; ++i) known = take_word(argv[i]) && known;
  if (!known) {
    std::cout << "usage: SCENES SCHEDULES [fence] [no_heavy] [no_light[=NAME]] "
                 "[relaxed|acquire|acq_rel=SITES]\n";
    return 2;
  }
  for (const char* s = argv[1]; *s; ++s) {
    scene = *s - '0';
    if (scene < 1 || scene > Test::kScenes) {
      std::cout << "no scene " << *s << ": there are 1 to " << Test::kScenes << "\n";
      return 2;
    }
    rl::test_params p;
    p.iteration_count = static_cast<rl::iteration_t>(std::atol(argv[2]));
    p.execution_depth_limit = 4000;
#ifndef HISTORY
    std::ostream nowhere(nullptr);
    p.output_stream = p.progress_stream = &nowhere;
#endif
    if (!rl::simulate<Test>(p)) {
      std::cout << "fails: scene " << scene << ": " << rl::test_result_str(p.test_result)
                << " at iteration " << p.stop_iteration << "\n";
      return 1;
    }
    std::cout << "holds: scene " << scene << ", " << p.stop_iteration << " iterations\n";
  }
  return 0;
}
