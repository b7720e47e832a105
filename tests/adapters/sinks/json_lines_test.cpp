#include "adapters/sinks/json_lines.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/registry.hpp"

namespace ringmain::sinks {
namespace {

using registry::SinkHandle;

enum class Colour : std::uint8_t { red, green };

struct Everything {
  std::uint64_t u = 0;
  std::int64_t i = 0;
  std::uint8_t small = 0;
  std::int8_t below = 0;
  float f = 0;
  double d = 0;
  bool yes = false;
  Colour colour = Colour::red;
  Name name;
  Text<24> text;
  std::uint32_t sequence = 0;
};
constexpr auto describe(EventOf<Everything>) {
  using E = Everything;
  return event("test.everything", field<&E::u>("u"), field<&E::i>("i"), field<&E::small>("small"),
               field<&E::below>("below"), field<&E::f>("f"), field<&E::d>("d"),
               field<&E::yes>("yes"), field<&E::colour>("colour", "red,green"),
               field<&E::name>("name"), field<&E::text>("text"), field<&E::sequence>("sequence"));
}

struct Tick {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Tick>) {
  return event("test.tick", field<&Tick::n>("n", Unit::count));
}

std::string line_of(const Everything& e) {
  const Stamp stamp{-5, 9, 3, TimeFrom::source};
  std::string line;
  formats::append_json_line(line, {"test.everything", schema<Everything>(),
                                   reinterpret_cast<const std::byte*>(&e), stamp});
  return line;
}

/// A field with the name of one of the keys in front.
struct InStep {
  std::uint64_t in_step = 0;
};
constexpr auto describe(EventOf<InStep>) {
  return event("test.in_step", field<&InStep::in_step>("in_step"));
}

TEST(JsonLineTest, AnEventThatWasSaidInAStepSaysWhere) {
  const InStep e{9};
  const Stamp stamp{5, 1, 2, TimeFrom::publisher};
  const EventView plain("test.in_step", schema<InStep>(), reinterpret_cast<const std::byte*>(&e),
                        stamp);
  const auto line = [&plain](const StepPlace& in) {
    std::string made;
    formats::append_json_line(made, {plain, in});
    return made.substr(made.find("\"sequence\""));
  };
  EXPECT_EQ(line({}), "\"sequence\":1,\"event_in_step\":9}\n");
  EXPECT_EQ(line({true, 7, {}, 0}), "\"sequence\":1,\"in_step\":7,\"event_in_step\":9}\n");
  EXPECT_EQ(line({true, 0, Name("a\"b"), 2}),
            "\"sequence\":1,\"in_step\":0,\"in_phase\":\"a\\\"b\",\"in_micro_batch\":2,"
            "\"event_in_step\":9}\n");
}

std::string string_of(std::string_view text) {
  std::string json;
  formats::append_json_string(json, text);
  return json;
}

/// A folder that is gone at the end of the test.
class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::string made = (std::filesystem::temp_directory_path() / "ringmain-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) folder_ = made;
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
    std::ifstream in(path(name));
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  std::filesystem::path folder_;
};

class JsonLinesTest : public FolderTest {
 protected:
  /// Writes there, and hears nothing yet.
  static SinkHandle open(const std::string& path) {
    auto opened = JsonLines::open(path);
    EXPECT_TRUE(opened) << opened.error().message;
    return {"json_lines", opened ? std::shared_ptr<JsonLines>(std::move(opened).value()) : nullptr};
  }
};

TEST(JsonLineTest, EveryKindOfFieldIsWrittenExactly) {
  Everything e;
  e.u = std::numeric_limits<std::uint64_t>::max();
  e.i = std::numeric_limits<std::int64_t>::min();
  e.small = 255;
  e.below = -128;
  e.f = 0.1f;
  e.d = 1e300;
  e.yes = true;
  e.colour = Colour::green;
  e.name = Name("all_reduce");
  e.text = Text<24>("zwölf");
  e.sequence = 7;
  EXPECT_EQ(line_of(e),
            "{\"channel\":\"test.everything\",\"time_ns\":-5,\"publisher\":3,\"sequence\":9,"
            "\"u\":18446744073709551615,\"i\":-9223372036854775808,\"small\":255,\"below\":-128,"
            "\"f\":0.1,\"d\":1e+300,\"yes\":true,\"colour\":\"green\",\"name\":\"all_reduce\","
            "\"text\":\"zwölf\",\"event_sequence\":7}\n");
}

TEST(JsonLineTest, WhatJsonHasNoWordForIsNullAndUnknownEnumeratorsAreNumbers) {
  Everything e;
  e.f = std::numeric_limits<float>::quiet_NaN();
  e.d = -std::numeric_limits<double>::infinity();
  e.colour = static_cast<Colour>(7);
  const std::string line = line_of(e);
  EXPECT_NE(line.find("\"f\":null,\"d\":null"), std::string::npos) << line;
  EXPECT_NE(line.find("\"colour\":7"), std::string::npos) << line;
}

TEST(JsonLineTest, ControlCharactersQuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(string_of(std::string_view("a\"b\\c\n\t\0\x1f\x7f", 10)),
            "\"a\\\"b\\\\c\\u000a\\u0009\\u0000\\u001f\\u007f\"");
}

TEST(JsonLineTest, WhatIsNotUtf8BecomesTheReplacementCharacter) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(string_of("\xff"), "\"" + r + "\"");
  EXPECT_EQ(string_of("a\xc3"), "\"a" + r + "\"");                        // cut short
  EXPECT_EQ(string_of("\xc0\xaf"), "\"" + r + r + "\"");                  // overlong
  EXPECT_EQ(string_of("\xe0\x80\x80"), "\"" + r + r + r + "\"");          // overlong
  EXPECT_EQ(string_of("\xed\xa0\x80"), "\"" + r + r + r + "\"");          // a surrogate
  EXPECT_EQ(string_of("\xf4\x90\x80\x80"), "\"" + r + r + r + r + "\"");  // beyond U+10FFFF
  EXPECT_EQ(string_of("\xf0\x9f\x98\x80 \xe2\x82\xac"), "\"\xf0\x9f\x98\x80 \xe2\x82\xac\"");
}

TEST_F(JsonLinesTest, ListenWritesEveryEventOfEachChannelInOrder) {
  Bus bus;
  auto opened = JsonLines::open(path("out.jsonl"));
  ASSERT_TRUE(opened) << opened.error().message;
  const std::shared_ptr<JsonLines> sink = std::move(opened).value();
  SinkHandle file("json_lines", sink);
  file.listen(bus.channel<Tick>());
  file.listen(bus.channel<Everything>());
  {
    auto said = bus.channel<Tick>().publisher({.capacity_events = 16, .overflow = Overflow::block});
    ASSERT_TRUE(said);
    for (std::uint64_t n = 0; n < 5000; ++n) ASSERT_TRUE(said.value().publish({n}));
  }
  bus.channel<Everything>().post({});
  ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
  const auto closed = file.close();
  ASSERT_TRUE(closed) << closed.error().message;
  std::uint64_t ticks = 0;
  for (const std::string& line : lines("out.jsonl")) {
    if (line.find("test.tick") == line.npos) continue;
    EXPECT_NE(line.find(",\"n\":" + std::to_string(ticks) + "}"), line.npos) << line;
    ++ticks;
  }
  EXPECT_EQ(ticks, 5000u);
  EXPECT_EQ(lines("out.jsonl").size(), 5001u);
  EXPECT_EQ(sink->figures().written, 5001u);
}

TEST_F(JsonLinesTest, AttachHearsMatchingChannelsThatComeLater) {
  Bus bus;
  auto file = registry::attach_sink(bus, "json_lines:" + path("out.jsonl"), "test.*");
  ASSERT_TRUE(file) << file.error().message;
  for (std::uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
  ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
  ASSERT_TRUE(file.value().close());
  EXPECT_EQ(lines("out.jsonl").size(), 100u);
}

TEST_F(JsonLinesTest, EveryLineNamesItsOriginAndTheFirstOneSaysWhoThatIs) {
  Bus bus;
  const Origin me = Origin::here();
  for (const char* name : {"one.jsonl", "two.jsonl"}) {
    SinkHandle file = open(path(name));
    file.listen(bus.channel<Tick>());
    for (std::uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
    ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
    ASSERT_TRUE(file.close());
    const auto all = lines(name);
    ASSERT_EQ(all.size(), 3u);
    for (const std::string& line : all) {
      EXPECT_NE(line.find(",\"origin\":\"" + me.id + "\""), line.npos) << line;
    }
    EXPECT_NE(all[0].find("\"origin_process\":{\"host\":\"" + me.process.host +
                          "\",\"pid\":" + std::to_string(::getpid()) +
                          ",\"program\":\"json_lines_test\",\"rank\":"),
              std::string::npos)
        << all[0];
    EXPECT_NE(all[0].find(",\"monotonic_ns\":"), std::string::npos) << all[0];
    EXPECT_NE(all[0].find(",\"realtime_ns\":"), std::string::npos) << all[0];
    EXPECT_EQ(all[1].find("origin_process"), std::string::npos) << all[1];
  }
}

TEST_F(JsonLinesTest, AForkedChildsPathHasItsOwnNumber) {
  (void)rank_identity();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(JsonLines::open(path("%p.jsonl")) ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(path(std::to_string(child) + ".jsonl")));
}

TEST_F(JsonLinesTest, RankAndProcessAreExpandedInThePath) {
  auto file = JsonLines::open(path("rank%r-%p.jsonl"));
  ASSERT_TRUE(file) << file.error().message;
  const auto& me = rank_identity();
  EXPECT_TRUE(std::filesystem::exists(
      path("rank" + std::to_string(me.rank) + "-" + std::to_string(me.pid) + ".jsonl")));
}

TEST_F(JsonLinesTest, AFullDiskIsReportedOnceAndEveryLostLineIsCounted) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  Bus bus;
  auto opened = JsonLines::open("/dev/full");
  ASSERT_TRUE(opened) << opened.error().message;
  const std::shared_ptr<JsonLines> sink = std::move(opened).value();
  SinkHandle file("json_lines", sink);
  file.listen(bus.channel<Tick>());
  for (std::uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(bus.channel<Tick>().publish({n}));
  ASSERT_TRUE(bus.flush(std::chrono::seconds(20)));
  const auto closed = file.close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("/dev/full"), std::string::npos) << closed.error().message;
  EXPECT_NE(closed.error().message.find("100 lines"), std::string::npos) << closed.error().message;
  EXPECT_EQ(sink->figures().lost, 100u);
  EXPECT_EQ(sink->figures().written, 0u);
}

TEST_F(JsonLinesTest, AFolderThatIsNotThereIsSaidInOneSentence) {
  const auto file = JsonLines::open(path("no/such/folder.jsonl"));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("no/such/folder.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace ringmain::sinks
