// Question: are the memory orders of engine/deliver/pull.cpp enough under the C++ memory model?
//
// The real pull.cpp, compiled with relacy_atomics.hpp and a stand-in for the channel
// (stand_in/engine/channel/channel_core.hpp). Scenes:
//   1 two feeders, two events each | a reader that waits and drains until it has all
//   2 a feeder, three events | the same reader
//   3 a feeder, then stop() | a reader that waits until the bus has stopped
//   4 a feeder, and somebody who asks the reader to leave and interrupts it | a reader that
//     waits until it is asked
// Checked: no data race on the slots; each event in order; nobody sleeps for ever; what was done
// before interrupt_reader() is seen by the reader that it interrupted.
// Forms and mutants: see relacy_search.hpp.
#define RINGMAIN_ATOMICS_HEADER "tests/model/relacy_atomics.hpp"
#include "tests/model/relacy_atomics.hpp"
//
#include "engine/channel/reader.cpp"
#include "engine/deliver/pull.cpp"

using ringmain::engine::ChannelCore;

struct Test : rl::test_suite<Test, 3> {
  static constexpr int kScenes = 4;
  ChannelCore channel;
  ringmain::engine::Atomic<std::uint32_t> asked{0};  // to leave
  rl::var<int> slot[ChannelCore::kLanes][3];

  // As push() in engine/publish/lane.hpp, as far as the reader's sleep is concerned.
  void publish(int lane, std::uint32_t index) {
    slot[lane][index]($) = static_cast<int>(index) + 1;
    channel.lanes[lane].word.store(index + 1, std::memory_order_release);
    ringmain::engine::asymmetric_fence_light_or_full();
    if (channel.line.leased.load(std::memory_order_relaxed) == 0) {
      ringmain::engine::tell_reader(channel.pull);
    }
  }
  void feed(int lane, std::uint32_t events) {
    for (std::uint32_t i = 0; i < events; ++i) publish(lane, i);
  }
  std::uint32_t drain() {
    std::uint32_t taken = 0;
    for (int i = 0; i < ChannelCore::kLanes; ++i) {
      ChannelCore::Lane& lane = channel.lanes[i];
      for (const std::uint32_t end = lane.word.load(std::memory_order_acquire);
           lane.consumed != end; ++lane.consumed, ++taken) {
        RL_ASSERT(slot[i][lane.consumed]($) == static_cast<int>(lane.consumed) + 1);
      }
    }
    return taken;
  }
  void read(std::uint32_t events) {
    for (std::uint32_t got = 0; got < events;) {
      if (ringmain::engine::wait_for_events(channel, -1)) got += drain();
    }
  }
  void read_until_stopped() {
    while (ringmain::engine::wait_for_events(channel, -1)) drain();
    RL_ASSERT(channel.bus.stopped());
  }
  void read_until_asked() {
    while (asked.load(std::memory_order_relaxed) == 0) {
      if (ringmain::engine::wait_for_events(channel, -1)) drain();
    }
  }
  void ask_to_leave() {
    asked.store(1, std::memory_order_relaxed);
    ringmain::engine::interrupt_reader(channel.pull);
  }
  void stop() {
    channel.bus.quit.store(1, std::memory_order_release);
    ringmain::engine::tell_reader(channel.pull);
  }

  void thread(unsigned i) {
    if (i == 2 && scene == 3) return read_until_stopped();
    if (i == 2 && scene == 4) return read_until_asked();
    if (i == 2) return read(scene == 1 ? 4 : 3);
    if (scene == 1) feed(static_cast<int>(i), 2);
    if (scene == 2 && i == 0) feed(0, 3);
    if (scene == 3 && i == 0) feed(0, 1);
    if (scene == 3 && i == 1) stop();
    if (scene == 4 && i == 0) feed(0, 1);
    if (scene == 4 && i == 1) ask_to_leave();
  }
};

int main(int argc, char** argv) {
  return search_scenes<Test>(argc, argv);
}
