// What if a signal handler publishes in the middle of its thread's publish on a channel that is
// recorded?
#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/sanitized.hpp"
#include "tests/process/stopped.hpp"

namespace ringmain::tests {
namespace {

/// What both have published is in the file of the recording, once, wherever the handler came; what
/// found no ring, as a handler in the middle of a first record does, is counted.
TEST(HandlerTest, ItMayPublishWhereverItInterruptsARecordedPublish) {
  if (!stops_after_each_instruction()) GTEST_SKIP() << "on x86-64 and without ThreadSanitizer only";
  const Folder folder;
  Bus bus(with_workers(1));
  auto options = in_folder(folder.path());
  options.file_bytes = 8u << 20;
  options.ring_bytes = 1u << 20;
  auto recording = bus.record("test.*", options).value();
  ASSERT_EQ(recording.complaint(), "");
  auto& ticks = bus.channel<Tick>();
  auto own = ticks.publisher();
  struct Other {
    Publisher<Tick>& own;
    std::uint64_t n;
    PublishCode code;
  } other{own, 0, PublishCode::accepted};
  const auto act = [](void* with) {
    auto& o = *static_cast<Other*>(with);
    o.code = o.own.publish({o.n}).code;
  };
  std::map<std::uint64_t, PublishCode> said;
  std::uint64_t n = 0;
  const auto publish_stopped_at = [&](long at) {
    other.n = ++n;
    const std::uint64_t mine = ++n;
    PublishCode code = PublishCode::closed;
    Stopped stopped(at, act, &other);
    const bool reached = stopped.run([&] { code = own.publish({mine}).code; });
    said[mine] = code;
    if (reached) said[other.n] = other.code;
    return reached;
  };
  // The first record of its thread, then later ones.
  bool reached = true;
  for (long at = 1; reached; at += is_sanitized() ? 401 : 17)
    std::thread([&] { reached = publish_stopped_at(at); }).join();
  std::thread([&] {
    (void)own.publish({0});
    said[0] = PublishCode::accepted;
    reached = true;
    for (long at = 1; reached; at += is_sanitized() ? 401 : 1) reached = publish_stopped_at(at);
  }).join();
  const std::string path = recording.path();
  recording.reset();
  const auto read = engine::flight::read_flight(path);
  EXPECT_EQ(read.damage + read.refusal, "");
  std::uint64_t missed = read.counts.unrecorded, annexed = 0;
  for (const auto& ring : read.rings) {
    missed += ring.missed + ring.ring.overwritten + ring.annex.overwritten;
    annexed += ring.annex.written;
    EXPECT_EQ(ring.ring.unreadable + ring.annex.unreadable, 0u);
  }
  EXPECT_GT(annexed, 0u) << "no handler came in the middle of a record";
  std::map<std::uint64_t, int> recorded;
  for (const auto& one : records_of<Tick>(read)) {
    ++recorded[one.event.n];
    ASSERT_TRUE(said.contains(one.event.n)) << one.event.n;
    EXPECT_EQ(one.head.code, said[one.event.n]) << one.event.n;
  }
  for (const auto& [event, times] : recorded) EXPECT_EQ(times, 1) << event;
  std::uint64_t unseen = 0;  // too_deep: refused before there was anything to record
  for (const auto& [event, code] : said)
    unseen += code != PublishCode::too_deep && !recorded.contains(event) ? 1 : 0;
  EXPECT_LE(unseen, missed);
  EXPECT_TRUE(bus.verify_accounting());
}

}  // namespace
}  // namespace ringmain::tests
