#include "adapters/sinks/summary.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sink_handle.hpp"

#include "tests/engine/eventually.hpp"

namespace ringmain::sinks {
namespace {

struct Tick {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Tick>) {
  return event("test.tick", field<&Tick::n>("n", Unit::count));
}
struct Tock {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Tock>) {
  return event("test.tock", field<&Tock::n>("n", Unit::count));
}

std::string text_of(std::FILE* file) {
  std::string text(4096, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

off_t size_of(std::FILE* file) {
  struct stat status {};
  return ::fstat(::fileno(file), &status) == 0 ? status.st_size : -1;
}

TEST(SummaryTest, ListenCountsEveryEventOfEachChannel) {
  Bus bus;
  const auto summary = std::make_shared<Summary>(nullptr);
  registry::SinkHandle handle("summary", summary);
  handle.listen(bus.channel<Tick>());
  handle.listen(bus.channel<Tock>());
  for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
  ASSERT_TRUE(bus.channel<Tock>().publish({0}));
  ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
  auto lines = summary->lines();
  std::sort(lines.begin(), lines.end(),
            [](const auto& a, const auto& b) { return a.channel < b.channel; });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].channel, "test.tick");
  EXPECT_EQ(lines[0].events, 1000u);
  EXPECT_EQ(lines[1].events, 1u);
  EXPECT_EQ(summary->events(), 1001u);
}

TEST(SummaryTest, AttachWritesWhatItHeardBusiestChannelFirst) {
  std::FILE* to = std::tmpfile();
  ASSERT_NE(to, nullptr);
  {
    Bus bus;
    const auto summary = std::make_shared<Summary>(to, std::chrono::hours(1));
    registry::SinkHandle handle("summary", summary);
    ASSERT_TRUE(handle.attach(bus, "test.*"));
    ASSERT_TRUE(bus.channel<Tock>().publish({0}));
    for (std::uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
    ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
    while (summary->events() < 101) std::this_thread::yield();
    EXPECT_EQ(handle.stats().dropped, 0u);
  }
  const std::string text = text_of(to);
  std::fclose(to);
  EXPECT_EQ(text.find("summary: 101 events, "), 0u) << text;
  EXPECT_NE(text.find(": test.tick 100, test.tock 1\n"), std::string::npos) << text;
}

TEST(SummaryTest, ALineIsWrittenEachPeriodThoughTheSinkOnlyListens) {
  std::FILE* to = std::tmpfile();
  ASSERT_NE(to, nullptr);
  Bus bus;
  const auto summary = std::make_shared<Summary>(to, milliseconds(300));
  registry::SinkHandle handle("summary", summary);
  handle.listen(bus.channel<Tick>());
  ASSERT_TRUE(bus.channel<Tick>().publish({1}));
  EXPECT_TRUE(tests::eventually([to] { return size_of(to) > 0; }));  // nothing more is published
  ASSERT_TRUE(handle.close());
  EXPECT_EQ(text_of(to).find("summary: 1 event, "), 0u);
  std::fclose(to);
}

}  // namespace
}  // namespace ringmain::sinks
