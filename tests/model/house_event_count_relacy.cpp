// Question: are the memory orders of engine/system/event_count.hpp enough under the C++ memory
// model?
//
// The real EventCount, compiled with relacy_atomics.hpp. Scenes:
//   1 one notifier with news | the housekeeper, until it has them
//   2 two notifiers, one bit each | the housekeeper, until it has both
//   3 a worker that leaves its park and works | the housekeeper, until it has seen that it is awake
//   4 as 3, with a notifier
// Checked: no data race on the news; no long wait lasts for ever. Short ones end by themselves.
// Mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include "engine/system/event_count.hpp"

using ringmain::engine::Atomic;
using ringmain::engine::EventCount;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 4;
  EventCount event_count;
  Atomic<std::uint32_t> idle{0};  // as Workers::idle_: changed by a read-modify-write
  rl::var<int> news[2];

  void notify(int i) {
    news[i]($) = 1;
    event_count.notify(i == 0 ? EventCount::kNews : EventCount::kInterest);
  }
  void leave_park() {
    idle.fetch_add(1, std::memory_order_seq_cst);
    event_count.notify_busy();
  }
  void keep_house(std::uint32_t wanted, bool worker) {
    bool seen_awake = false;
    for (std::uint32_t had = 0; had != wanted || (worker && !seen_awake);) {
      const std::uint32_t notified = event_count.wait(
          1, -1, [&] { return seen_awake = idle.load(std::memory_order_seq_cst) != 0; });
      if ((notified & EventCount::kNews) != 0) RL_ASSERT(news[0]($) == 1);
      if ((notified & EventCount::kInterest) != 0) RL_ASSERT(news[1]($) == 1);
      had |= notified & (EventCount::kNews | EventCount::kInterest);
    }
  }

  void thread(unsigned i) {
    const std::uint32_t both = EventCount::kNews | EventCount::kInterest;
    if (i == 2)
      return keep_house(scene == 3 ? 0 : scene == 2 ? both : +EventCount::kNews, scene >= 3);
    if (i == 0) return scene == 3 ? void() : notify(0);
    if (scene == 2) return notify(1);
    if (scene >= 3) return leave_park();
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
