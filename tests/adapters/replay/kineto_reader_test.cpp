// Is every shape in which traces are written read alike?
#include <cstdlib>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

constexpr const char* kSlice =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8, "ts": 12.5, "dur": 3})";

TEST(KinetoReaderTest, AnObjectWithTraceEventsIsRead) {
  const Reading reading = read_text(object_trace({kSlice}));
  ASSERT_FALSE(reading.error) << reading.error->message;
  ASSERT_EQ(reading.records.size(), 1u);
  const Seen& seen = reading.records[0];
  EXPECT_EQ(seen.number, 1u);
  EXPECT_EQ(seen.phase, 'X');
  EXPECT_EQ(seen.name, "aten::mm");
  EXPECT_EQ(seen.category, "cpu_op");
  EXPECT_EQ(seen.process, "7");
  EXPECT_EQ(seen.thread, "8");
  EXPECT_EQ(seen.ts_ns, 12500);
  EXPECT_EQ(seen.duration_ns, 3000);
  EXPECT_EQ(reading.counts.read, 1u);
}

TEST(KinetoReaderTest, ABareArrayIsRead) {
  const Reading reading = read_text(std::string("[") + kSlice + "," + kSlice + "]\n");
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.records.size(), 2u);
}

TEST(KinetoReaderTest, AnArrayMayEndWithAComma) {
  EXPECT_EQ(read_text(std::string("[") + kSlice + ",]").records.size(), 1u);
}

TEST(KinetoReaderTest, NoRecordsAreNoError) {
  for (const char* text : {"[]", " [ ] ", R"({"traceEvents": []})", "\xef\xbb\xbf[]"}) {
    const Reading reading = read_text(text);
    EXPECT_FALSE(reading.error) << text << ": " << reading.error->message;
    EXPECT_EQ(reading.counts.read, 0u);
  }
}

TEST(KinetoReaderTest, GzipIsToldByItsBytesNotItsName) {
  const Reading reading = read_text(gzip(object_trace({kSlice, kSlice})));
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.records.size(), 2u);
}

TEST(KinetoReaderTest, GzipMembersAreOneText) {
  const std::string text = object_trace({kSlice, kSlice, kSlice});
  const std::size_t third = text.size() / 3;
  const std::string members = gzip(text.substr(0, third)) + gzip("") +
                              gzip(text.substr(third, third)) + gzip(text.substr(2 * third));
  const Reading reading = read_text(members);
  EXPECT_FALSE(reading.error) << reading.error->message;
  EXPECT_EQ(reading.records.size(), 3u);
  EXPECT_FALSE(read_text(members + std::string(512, '\0')).error) << "tapes pad with zeros";
}

TEST(KinetoReaderTest, TimesAreReadAsNumberOrString) {
  const Reading reading = read_text(object_trace(
      {R"({"ph":"X","ts":"1669783687464181.5","dur":"2.25"})", R"({"ph":"X","ts":5,"dur":null})",
       R"({"ph":"X","ts":6})", R"({"ph":"i","ts":7.0})", R"({"ph":"X","ts":-3,"dur":1})"}));
  ASSERT_EQ(reading.records.size(), 5u);
  EXPECT_EQ(reading.records[0].ts_ns, 1669783687464181500);
  EXPECT_EQ(reading.records[0].duration_ns, 2250);
  EXPECT_EQ(reading.records[1].duration_ns, 0);
  EXPECT_EQ(reading.records[4].ts_ns, -3000);
}

TEST(KinetoReaderTest, WhatTheTraceSaysOfItselfMayComeLast) {
  const Reading reading = read_text(
      object_trace({kSlice}, R"(, "traceName": "t", "distributedInfo": {"rank": 1, "world_size": 2},
                 "baseTimeNanoseconds": 1711964646000000000)"));
  EXPECT_EQ(reading.header.base_ns, 1711964646000000000);
  EXPECT_EQ(reading.header.ranks.rank, 1);
  EXPECT_EQ(reading.header.ranks.world_size, 2);
}

TEST(KinetoReaderTest, RewindAddsTheBaseToEveryTime) {
  const InMemory file(object_trace({kSlice}, R"(, "baseTimeNanoseconds": 1000000)"));
  auto reader = KinetoReader::open(file.path());
  ASSERT_TRUE(reader);
  KinetoRecord record;
  while (reader.value().next(record).value()) {
  }
  reader.value().rewind(reader.value().header().base_ns);
  ASSERT_TRUE(reader.value().next(record).value());
  EXPECT_EQ(record.ts_ns, 1012500);
  EXPECT_EQ(reader.value().counts().read, 1u);
}

TEST(KinetoReaderTest, EscapesAreUndoneAndUnknownMembersPassed) {
  const Reading reading = read_text(object_trace(
      {R"({"x":{"a":[1,{"b":"]}\""}]},"name":"a\"b\\c\u00e9\n","ph":"X","ts":1,"y":nan,"z":-inf})"}));
  ASSERT_EQ(reading.records.size(), 1u);
  EXPECT_EQ(reading.records[0].name, "a\"b\\c\xc3\xa9\n");
}

TEST(KinetoReaderTest, OfDuplicateKeysTheLastCounts) {
  const Reading reading =
      read_text(object_trace({R"({"ph":"X","name":"a","ts":1,"name":"b","ts":2,"ph":"i"})"}));
  ASSERT_EQ(reading.records.size(), 1u);
  EXPECT_EQ(reading.records[0].name, "b");
  EXPECT_EQ(reading.records[0].ts_ns, 2000);
  EXPECT_EQ(reading.records[0].phase, 'i');
}

TEST(KinetoReaderTest, FieldsOfOddTypesReadAsNothing) {
  const Reading reading = read_text(object_trace(
      {R"({"ph":"X","ts":1,"name":null,"cat":[1],"pid":{"a":1},"tid":true,"args":"none"})",
       R"({"ph":"X","ts":1,"name":17,"args":{"correlation":"x","stream":[],"device":null}})"}));
  ASSERT_EQ(reading.records.size(), 2u);
  EXPECT_EQ(reading.records[0].name + reading.records[0].category, "");
  EXPECT_EQ(reading.records[0].process + reading.records[0].thread, "");
  EXPECT_EQ(reading.records[1].name, "17");
}

TEST(KinetoReaderTest, RecordsLongerThanTheBufferAreWhole) {
  const std::string name(1 << 20, 'n');
  const Reading reading =
      read_text(object_trace({kSlice, R"({"ph":"X","ts":1,"name":")" + name + R"("})", kSlice}));
  ASSERT_EQ(reading.records.size(), 3u);
  EXPECT_EQ(reading.records[1].name, name);
}

/// A pipe that a thread fills.
class Pipe {
 public:
  explicit Pipe(std::string text) {
    if (::pipe2(fds_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    writer_ = std::thread([this, text = std::move(text)] {
      for (std::size_t at = 0; at < text.size();) {
        const ssize_t put =
            ::write(fds_[1], text.data() + at, std::min<std::size_t>(text.size() - at, 777));
        if (put <= 0) break;
        at += static_cast<std::size_t>(put);
      }
      ::close(fds_[1]);
    });
  }
  ~Pipe() {
    writer_.join();
    ::close(fds_[0]);
  }
  [[nodiscard]] int fd() const { return fds_[0]; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fds_[0]); }

 private:
  int fds_[2] = {-1, -1};
  std::thread writer_;
};

TEST(KinetoReaderTest, APipeCanBeReadTwice) {
  std::vector<std::string> records(300, kSlice);
  for (const bool zipped : {false, true}) {
    const std::string text = object_trace(records);
    const Pipe pipe(zipped ? gzip(text) : text);
    auto reader = KinetoReader::open(pipe.path(), {}, true);
    ASSERT_TRUE(reader) << reader.error().message;
    KinetoRecord record;
    for (int reading = 0; reading < 3; ++reading) {
      std::uint64_t read = 0;
      while (reader.value().next(record).value()) ++read;
      EXPECT_EQ(read, 300u);
      reader.value().rewind();
    }
    EXPECT_EQ(reader.value().size(), 0u);
  }
}

TEST(KinetoReaderTest, StandardInputIsRead) {
  const int kept = ::dup(STDIN_FILENO);
  {
    const Pipe pipe(object_trace({kSlice}));
    ASSERT_EQ(::dup2(pipe.fd(), STDIN_FILENO), STDIN_FILENO);
    const Mapping mapping = map_trace("-");
    EXPECT_FALSE(mapping.error);
    EXPECT_EQ(mapping.on("replay.slice"), 1u);
  }
  {
    const InMemory file(object_trace({kSlice, kSlice}));  // ringmain replay - < trace.json
    const int fd = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(fd, STDIN_FILENO), STDIN_FILENO);
    ::close(fd);
    EXPECT_EQ(map_trace("-").on("replay.slice"), 2u);
  }
  if (kept >= 0) {
    ::dup2(kept, STDIN_FILENO);
    ::close(kept);
  }
}

TEST(KinetoReaderTest, APipeIsKeptOnlyUpToItsLimit) {
  const Pipe pipe(object_trace(std::vector<std::string>(200, kSlice)));
  KinetoOptions options;
  options.spool_bytes_max = 1000;
  const Mapping mapping = map_trace(pipe.path(), true, options);
  ASSERT_TRUE(mapping.error);
  EXPECT_NE(mapping.error->message.find("save it to a file"), std::string::npos);
  char rest[4096];
  while (::read(pipe.fd(), rest, sizeof rest) > 0) {  // lets the writer end
  }
}

}  // namespace
}  // namespace ringmain::replay
