#include "adapters/sinks/summary.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

TEST(SummaryTest, ListenCountsEveryEventOfEachChannel) {
  Bus bus;
  auto summary = Summary::open();
  ASSERT_TRUE(summary) << summary.error().message;
  summary.value().listen(bus.channel<Tick>());
  summary.value().listen(bus.channel<Tock>());
  for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
  ASSERT_TRUE(bus.channel<Tock>().publish({0}));
  ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
  const auto lines = summary.value().lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].channel, "test.tick");
  EXPECT_EQ(lines[0].events, 1000u);
  EXPECT_EQ(lines[1].events, 1u);
  EXPECT_EQ(summary.value().events(), 1001u);
}

TEST(SummaryTest, AttachWritesWhatItHeardBusiestChannelFirst) {
  std::FILE* to = std::tmpfile();
  ASSERT_NE(to, nullptr);
  {
    Bus bus;
    auto summary = Summary::attach(bus, to, "test.*", std::chrono::hours(1));
    ASSERT_TRUE(summary) << summary.error().message;
    ASSERT_TRUE(bus.channel<Tock>().publish({0}));
    for (std::uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
    ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
    while (summary.value().events() < 101) std::this_thread::yield();
    EXPECT_EQ(summary.value().dropped(), 0u);
  }
  const std::string text = text_of(to);
  std::fclose(to);
  EXPECT_EQ(text.find("summary: 101 events, "), 0u) << text;
  EXPECT_NE(text.find(": test.tick 100, test.tock 1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace ringmain::sinks
