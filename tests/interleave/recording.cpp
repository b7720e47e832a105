// Scenario: a recording begins and ends while threads publish, come to their ends, publish once
// more after them, and signal handlers publish in the middle of all that. Is nothing written once
// the end was waited for, and is every event written or counted before?
#include "engine/flight/recording.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/flight/ring_reader.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::engine::flight {

/// Its records are never given back, but the memory of a schedule is: each begins with none.
struct WhoIsInside {
  static void forget() { std::construct_at(&Recording::presence); }
};

}  // namespace ringmain::engine::flight

namespace ringmain::interleave {
namespace {

namespace flight = engine::flight;

enum : std::size_t { kPublishers = 3 };

/// In memory, with fewer rings than threads: one that has ended leaves its ring to the next.
Ref<flight::Recording> begin_recording() {
  flight::RingFileOptions options;
  options.folder = "/dev/null";
  options.file_bytes = 1u << 20;
  options.ring_bytes = 256u << 10;
  options.text_bytes = 16u << 10;
  options.operations = 4;
  return new flight::Recording(flight::RingFile::open(options), {std::string_view("test")});
}

/// What the file says, without a step: nobody may write to it meanwhile.
struct Said {
  std::uint64_t written = 0, elsewhere = 0;  // records; events that were counted in their place
  std::size_t live = 0;                      // rings that threads have
  explicit Said(const flight::RingFile& file) {
    const std::vector<std::byte> bytes(file.memory(), file.memory() + file.bytes());
    const flight::FlightRead read = flight::parse_flight({}, bytes, {});
    expect(read.refusal.empty() && read.damage.empty(), "the file is damaged");
    elsewhere = read.counts.unrecorded;
    for (const flight::RingRead& ring : read.rings) {
      for (const flight::TrackRead* track : {&ring.ring, &ring.annex}) {
        expect(track->unreadable == 0 && track->overwritten == 0, "a record is not whole");
        expect(!track->under_way, "a record is under way though nobody is inside");
        written += track->written;
      }
      elsewhere += ring.missed;
      live += ring.state == flight::RingState::live ? 1 : 0;
    }
  }
};

/// A thread that publishes, its handlers, and what is called after its end.
struct Publishes {
  Lane* lane = nullptr;
  std::uint64_t times = 0, nested = 0;

  void say_one() {
    ++times;
    (void)say(*lane, times);
  }
  static void after_the_end(void* with) { static_cast<Publishes*>(with)->say_one(); }
  void all() {
    // Before the thread's place is taken, so that it is called after that is given back.
    if (choose(2) == 0) at_fiber_exit(&Publishes::after_the_end, this);
    const InHandlersReach reach([this] {
      if (++nested <= 2) say_one();
    });
    for (std::uint64_t n = 1 + choose(2); n > 0; --n) say_one();
  }
};

}  // namespace

void recording_ends() {
  flight::WhoIsInside::forget();
  const std::size_t before = live_blocks();
  {
    Crew crew(1);
    const auto channel = crew.channel();
    auto recording = begin_recording();
    const flight::Recorded* const as = recording->add_channel("test", 0, 7, {});
    std::array<Publishes, kPublishers> all{};
    for (Publishes& one : all) one.lane = &lane_of(*channel, lane_options());
    const bool from_the_begin = choose(2) == 0, joined = choose(2) == 0;
    if (from_the_begin) channel->set_recorded(0, as);
    Threads threads;
    for (Publishes& one : all) {
      threads.start([&one] { one.all(); });
      if (joined && choose(2) == 0) threads.join();
    }
    if (!from_the_begin) channel->set_recorded(0, as);
    if (joined) threads.join();
    channel->set_recorded(0, nullptr);
    flight::Recording::wait_until_none_inside();
    recording->note();
    const Said said(recording->file());
    std::uint64_t published = 0;
    for (const Publishes& one : all) published += one.times;
    if (joined) {
      expect(!from_the_begin || said.written + said.elsewhere == published,
             "an event is neither written nor counted");
      expect(said.live == 0, "a ring stays with a thread that has ended");
    }
    for (std::uint64_t steps = choose(20); steps > 0; --steps) step("later", true, {"later", 0});
    expect(Said(recording->file()).written == said.written, "a record is written after the end");
    recording = {};  // while threads end
    threads.join();
  }
  const std::size_t records = live_blocks() - before;
  expect(records <= 2 * (kPublishers + 2), "a record of who is inside is not taken again");
  keep_blocks(records);
}

}  // namespace ringmain::interleave
