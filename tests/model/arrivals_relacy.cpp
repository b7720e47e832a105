// Question: are the memory orders of engine/system/arrivals.hpp enough under the C++ memory model?
//
// The real Arrivals and QuietSince, compiled with relacy_atomics.hpp. Scenes:
//   1 a subscriber comes, and says so | a thread issues until it is told | another issues
//   2 a communicator ends, and that is said | the same
// Checked: what is issued after it was said is told; a thread that finds nobody remembers nothing
// that makes another pass it over. Mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include "engine/system/arrivals.hpp"

using ringmain::engine::Arrivals;
using ringmain::engine::Atomic;
using ringmain::engine::QuietSince;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 2;
  Arrivals arrivals;
  QuietSince quiet_since;
  Atomic<std::uint32_t> there{0};  // the list, or that it is over: both are looked at, relaxed
  Atomic<std::uint32_t> said{0};   // by the program's own means

  /// False: it was passed over.
  bool issue() {
    if (quiet_since.still(arrivals)) return false;
    const std::uint64_t before = quiet_since.before();
    const std::uint64_t count = arrivals.so_far();
    if (there.load(std::memory_order_relaxed) != 0) return true;
    quiet_since.found_nobody(before, count);
    return false;
  }
  void come() {
    if (scene == 2) quiet_since.no_more();
    // Release: the reason, which who sees it knows of.
    there.store(1, scene == 2 ? std::memory_order_release : std::memory_order_relaxed);
    if (scene == 1) arrivals.one_more();
    said.store(1, std::memory_order_release);
  }
  void thread(unsigned i) {
    if (i == 0) return come();
    if (i == 1) {
      (void)issue();
      (void)issue();
      return;
    }
    (void)issue();
    const bool must = said.load(std::memory_order_acquire) != 0 ||
                      (scene == 2 && there.load(std::memory_order_acquire) != 0);
    const bool told = issue();
    RL_ASSERT(told || !must);
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
