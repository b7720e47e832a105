// Does a sink that knows no types hear everything, one call at a time, whatever it throws?
#include "adapters/sink_handle.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "events/steps/source.hpp"

#include "tests/engine/eventually.hpp"

namespace ringmain::registry {
namespace {

struct Note {
  std::uint64_t n;
};
constexpr auto describe(EventOf<Note>) {
  return event("test.note", field<&Note::n>("n"));
}

class OverlapSink final : public Sink {
 public:
  void hear(const EventView&) override {
    overlapped = overlapped || inside.exchange(true);
    ++heard;
    inside = false;
  }
  void idle() override { ++idles; }
  std::atomic<int> heard{0}, idles{0};
  std::atomic<bool> inside{false}, overlapped{false};
};

class ThrowingSink final : public Sink {
 public:
  void hear(const EventView&) override { throw 1; }
  Result<bool> close() override { throw std::runtime_error("stuck"); }
};

TEST(SinkHandleTest, AThrowingSinkIsCountedAndHarmsNobody) {
  Bus bus;
  SinkHandle bad("bad", std::make_shared<ThrowingSink>());
  SinkHandle good("good", std::make_shared<OverlapSink>());
  bad.listen(bus.channel<Note>());
  good.listen(bus.channel<Note>());
  for (std::uint64_t i = 0; i < 100; ++i) bus.channel<Note>().post({i});
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  EXPECT_EQ(bad.threw(), 100u);
  EXPECT_EQ(good.heard(), 100u);
  EXPECT_NE(bad.close().error().message.find("stuck"), std::string::npos);
  EXPECT_TRUE(good.close());
}

TEST(SinkHandleTest, AttachedItHearsAllChannelsAndWhatWasQueuedAtTheEnd) {
  Bus bus;
  auto sink = std::make_shared<OverlapSink>();
  SinkHandle handle("all", sink);
  ASSERT_TRUE(handle.attach(bus));
  EXPECT_EQ(handle.attach(bus).error().code, Error::Code::conflict);
  for (std::uint64_t i = 0; i < 1000; ++i) bus.channel<Note>().post({i});
  for (std::uint64_t i = 0; i < 1000; ++i) bus.channel<Note>("test.other").post({i});
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  ASSERT_TRUE(handle.close());
  EXPECT_EQ(sink->heard, 2000);
  EXPECT_EQ(handle.stats().dropped, 0u);
  EXPECT_GE(sink->idles, 1);
}

TEST(SinkHandleTest, AttachedItWakesForAnEventWithoutBeingClosed) {
  Bus bus;
  auto sink = std::make_shared<OverlapSink>();
  SinkHandle handle("all", sink);
  ASSERT_TRUE(handle.attach(bus));
  for (int round = 1; round <= 50; ++round) {
    bus.channel<Note>().post({1});
    EXPECT_TRUE(tests::eventually([&] { return sink->heard == round; }));
  }
}

/// Writes down where each word was said.
class PlacesSink final : public Sink {
 public:
  void hear(const EventView& event) override {
    if (event.channel() == "test.note") places.push_back(event.in_step());
  }
  std::vector<StepPlace> places;
};

TEST(SinkHandleTest, AttachedItKnowsTheStepOfEveryEvent) {
  Bus bus;
  auto sink = std::make_shared<PlacesSink>();
  SinkHandle handle("places", sink);
  ASSERT_TRUE(handle.attach(bus));
  auto steps = step::Source::attach(bus).value();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    bus.channel<Note>().post({n});
    const auto step = steps.step(n);
    const auto phase = steps.phase(Name("forward"));
    bus.channel<Note>().post({n});
  }
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  ASSERT_TRUE(handle.close());
  ASSERT_EQ(sink->places.size(), 6u);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const StepPlace inside{true, i / 2 + 1, Name("forward"), 0};
    EXPECT_EQ(sink->places[i], i % 2 == 0 ? StepPlace{} : inside) << i;
  }
}

class PeriodicSink : public Sink, public Periodic {
 public:
  void hear(const EventView&) override { heard = true; }
  void idle() override { ++idles; }
  [[nodiscard]] milliseconds idle_every() const noexcept override { return milliseconds(1); }
  std::atomic<bool> heard{false};
  std::atomic<int> idles{0};
};

TEST(SinkHandleTest, APeriodicSinkIsCalledWithoutEvents) {
  Bus bus;
  auto sink = std::make_shared<PeriodicSink>();
  SinkHandle handle("periodic", sink);
  handle.listen(bus.channel<Note>());
  EXPECT_TRUE(tests::eventually([&] { return sink->idles >= 3; }));
  ASSERT_TRUE(handle.attach(bus, "test.other"));
  const int before = sink->idles;
  EXPECT_TRUE(tests::eventually([&] { return sink->idles >= before + 3; }));
  bus.channel<Note>("test.other").post({1});
  EXPECT_TRUE(tests::eventually([&] { return sink->heard.load(); }));
  EXPECT_EQ(handle.attach(bus).error().code, Error::Code::conflict);
  ASSERT_TRUE(handle.close());
}

/// Has another event at hand each time that it hears one, until it was called without one or gives
/// up.
class BusySink final : public PeriodicSink {
 public:
  explicit BusySink(Bus& bus) : bus_(bus) {}
  void hear(const EventView&) override {
    if (!began_) before_ = idles;
    began_ = true;
    called_between = called_between || idles > before_;
    if (called_between || gives_up) return;
    bus_.channel<Note>().post({0});
    (void)bus_.flush(std::chrono::seconds(30));  // it is in the mailbox
  }
  std::atomic<bool> called_between{false};
  std::atomic<bool> gives_up{false};

 private:
  Bus& bus_;
  bool began_ = false;
  int before_ = 0;
};

TEST(SinkHandleTest, APeriodicSinkIsCalledWhileEventsDoNotEnd) {
  Bus bus;
  auto sink = std::make_shared<BusySink>(bus);
  SinkHandle handle("busy", sink);
  ASSERT_TRUE(handle.attach(bus));
  bus.channel<Note>().post({0});
  EXPECT_TRUE(tests::eventually([&] { return sink->called_between.load(); }));
  sink->gives_up = true;
  ASSERT_TRUE(handle.close());
}

TEST(SinkHandleTest, CallsFromSeveralChannelsDoNotOverlap) {
  Bus bus({.workers = 4});
  auto sink = std::make_shared<OverlapSink>();
  SinkHandle handle("all", sink);
  for (const char* name : {"test.a", "test.b", "test.c", "test.d"}) {
    handle.listen(bus.channel<Note>(name));
  }
  {
    std::vector<std::jthread> threads;
    for (const char* name : {"test.a", "test.b", "test.c", "test.d"}) {
      threads.emplace_back([&bus, name] {
        for (std::uint64_t i = 0; i < 5000; ++i) bus.channel<Note>(name).post({i});
      });
    }
  }
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  EXPECT_EQ(sink->heard, 20000);
  EXPECT_FALSE(sink->overlapped);
}

}  // namespace
}  // namespace ringmain::registry
