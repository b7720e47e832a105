// Question: are the memory orders of engine/system/bell.hpp enough under the C++ memory model?
//
// The real Bell, compiled with relacy_atomics.hpp. Scenes:
//   1 one ringer with news | the housekeeper, until it has them
//   2 two ringers, one bit each | the housekeeper, until it has both
//   3 a worker that leaves its park and works | the housekeeper, until it has seen that it is awake
//   4 as 3, with a ringer
// Checked: no data race on the news; nobody dozes for ever. Naps end by themselves.
// Mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "ringmain/tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include "engine/system/bell.hpp"

using ringmain::engine::Atomic;
using ringmain::engine::Bell;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 4;
  Bell bell;
  Atomic<std::uint32_t> idle{0};  // as Workers::idle_: changed by a read-modify-write
  rl::var<int> news[2];

  void ring(int i) {
    news[i]($) = 1;
    bell.ring(i == 0 ? Bell::kNews : Bell::kInterest);
  }
  void leave_park() {
    idle.fetch_add(1, std::memory_order_seq_cst);
    bell.stir();
  }
  void keep_house(std::uint32_t rings, bool worker) {
    bool seen_awake = false;
    for (std::uint32_t had = 0; had != rings || (worker && !seen_awake);) {
      const std::uint32_t rung =
          bell.sleep(1, -1, [&] { return seen_awake = idle.load(std::memory_order_seq_cst) != 0; });
      if ((rung & Bell::kNews) != 0) RL_ASSERT(news[0]($) == 1);
      if ((rung & Bell::kInterest) != 0) RL_ASSERT(news[1]($) == 1);
      had |= rung & (Bell::kNews | Bell::kInterest);
    }
  }

  void thread(unsigned i) {
    const std::uint32_t both = Bell::kNews | Bell::kInterest;
    if (i == 2) return keep_house(scene == 3 ? 0 : scene == 2 ? both : +Bell::kNews, scene >= 3);
    if (i == 0) return scene == 3 ? void() : ring(0);
    if (scene == 2) return ring(1);
    if (scene >= 3) return leave_park();
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
