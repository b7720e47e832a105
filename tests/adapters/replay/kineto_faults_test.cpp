// Does every fault end in one sentence or in a counted record, and never in a crash?
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

constexpr const char* kGood = R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":1,"dur":1})";

std::string good_trace() {
  return object_trace(
      {kGood,
       R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":2,"dur":1,)"
       R"("args":{"correlation":5,"cbid":211,"External id":3}})",
       R"({"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce_RING","pid":0,"tid":7,"ts":4,"dur":9,)"
       R"("args":{"device":0,"stream":7,"correlation":5}})",
       R"({"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":2,"ts":1.5,"dur":3})",
       R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p\"\\\u0041"}})",
       R"({"ph":"s","id":5,"pid":1,"tid":2,"ts":2,"cat":"ac2g","name":"ac2g"})",
       R"({"ph":"C","name":"memory","pid":1,"ts":3,"args":{"a":1,"b":2.5}})"},
      R"(, "distributedInfo": {"rank": 0, "world_size": 2}, "baseTimeNanoseconds": 1700000000000000000)");
}

/// Where each record of good_trace() ends in its text.
std::vector<std::size_t> record_ends(const std::string& text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; (at = text.find("\n  {", at)) != std::string::npos; ++at) {
    const std::size_t line_end = text.find('\n', at + 1);
    ends.push_back(line_end - (text[line_end - 1] == ',' ? 1 : 0));
  }
  return ends;
}

void expect_one_sentence(const Reading& reading, const std::string& about) {
  ASSERT_TRUE(reading.error) << about << ": no error";
  const std::string& message = reading.error->message;
  EXPECT_GT(message.size(), 20u) << message;
  EXPECT_EQ(message.back(), '.') << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(KinetoFaultsTest, EveryPrefixGivesItsRecordsAndThenAnError) {
  const std::string text = good_trace();
  const std::vector<std::size_t> ends = record_ends(text);
  ASSERT_EQ(ends.size(), 7u);
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {  // the last byte is a newline
    const Reading reading = read_text(text.substr(0, size));
    expect_one_sentence(reading, "a prefix of " + std::to_string(size) + " bytes");
    const auto whole = static_cast<std::size_t>(
        std::count_if(ends.begin(), ends.end(), [size](std::size_t end) { return end <= size; }));
    EXPECT_EQ(reading.records.size(), whole) << "a prefix of " << size << " bytes";
  }
  EXPECT_FALSE(read_text(text.substr(0, text.size() - 1)).error);
}

TEST(KinetoFaultsTest, EveryPrefixOfAGzipFileGivesAnError) {
  const std::string zipped = gzip(good_trace());
  for (std::size_t size = 0; size < zipped.size(); ++size) {
    const Reading reading = read_text(zipped.substr(0, size));
    expect_one_sentence(reading, "a gzip prefix of " + std::to_string(size) + " bytes");
    EXPECT_LE(reading.records.size(), 7u);
  }
}

TEST(KinetoFaultsTest, EveryPrefixCanBeMapped) {
  const std::string text = good_trace();
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    const Mapping mapping = map_text(text.substr(0, size));
    ASSERT_TRUE(mapping.error) << size;
    EXPECT_GE(mapping.events.size(), mapping.counts.read) << "each record gives an event";
  }
}

TEST(KinetoFaultsTest, FlippedBytesAreCountedOrReported) {
  std::mt19937 random(20261121);  // NOLINT: the same flips every time
  const std::string plain = good_trace();
  const std::string zipped = gzip(plain);
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = round % 3 == 0 ? zipped : plain;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      char& byte = bytes[random() % bytes.size()];
      byte = random() % 2 == 0 ? static_cast<char>(random())
                               : static_cast<char>(byte ^ (1 << random() % 8));
    }
    const Mapping mapping = map_text(bytes);
    const std::uint64_t delivered = mapping.counts.read - mapping.counts.skipped_total();
    EXPECT_GE(mapping.events.size(), delivered);
    EXPECT_LE(mapping.counts.read, 64u);
    for (const KinetoMapped& mapped : mapping.events) ASSERT_LT(mapped.lane, mapping.lanes.size());
  }
}

TEST(KinetoFaultsTest, WhatIsNoTraceIsNamed) {
  struct Case {
    std::string bytes;
    std::string said;
  };
  const Case cases[] = {
      {"", "is empty"},
      {" \n\t ", "is empty"},
      {"\xef\xbb\xbf", "is empty"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\x89PNG\r\n\x1a\n", "picture"},
      {"PK\x03\x04", "zip archive"},
      {"\x28\xb5\x2f\xfd....", "zstd"},
      {std::string("\xff\xfe{\0", 4), "UTF-16"},
      {"hello", "begins with 'h'"},
      {std::string(100, '\0'), "begins with byte 0x00"},
      {"\x1f", "begins with byte 0x1f"},
      {"\x1f\x8b", "in the middle of its gzip data"},
      {"\x1f\x8bgarbage that is no gzip header", "damaged gzip data"},
      {"{}", "no \"traceEvents\""},
      {R"({"a": [1, {"b": "c"}], "d": 4})", "no \"traceEvents\""},
      {R"({"traceEvents": 5})", "after \"traceEvents\""},
      {R"({"traceEvents": {}})", "after \"traceEvents\""},
      {R"({"traceEvents" [])", "':'"},
      {"{traceEvents: []}", "the name of a member"},
      {"[[}]", "']' belongs"},
      {"[,]", "a value"},
      {"[{} {}]", "',' or ']'"},
      {"[{},,{}]", "a value"},
      {"[] []", "the end of the file"},
      {"[{}] trailing", "the end of the file"},
      {gzip("[]") + "trailing", "after the end of its gzip data"},
      {gzip("not a trace"), "begins with 'n'"},
  };
  for (const Case& one : cases) {
    const Reading reading = read_text(one.bytes);
    expect_one_sentence(reading, one.bytes);
    if (reading.error) {
      EXPECT_NE(reading.error->message.find(one.said), std::string::npos)
          << reading.error->message << "\n  should say: " << one.said;
    }
  }
}

TEST(KinetoFaultsTest, WhatCannotBeOpenedIsNamed) {
  EXPECT_EQ(read_records("/nonexistent/trace.json").error->code, Error::Code::not_found);
  expect_one_sentence(read_records("/nonexistent/trace.json"), "a missing file");
  expect_one_sentence(read_records("/"), "a folder");
  expect_one_sentence(read_records(""), "no name");
  KinetoOptions options;
  options.memory_max = 1000;
  expect_one_sentence(read_text("[]", options), "too little memory");
}

struct Bad {
  const char* record;
  Skip reason;
};
const Bad kBad[] = {
    {"5", Skip::not_an_object},
    {"null", Skip::not_an_object},
    {"\"text\"", Skip::not_an_object},
    {"[1, 2]", Skip::not_an_object},
    {"nonsense", Skip::not_an_object},
    {"{}", Skip::no_phase},
    {R"({"ts":1})", Skip::no_phase},
    {R"({"ph":"XX","ts":1})", Skip::no_phase},
    {R"({"ph":"","ts":1})", Skip::no_phase},
    {R"({"ph":5,"ts":1})", Skip::no_phase},
    {R"({"ph":null,"ts":1})", Skip::no_phase},
    {R"({"ph":"?","ts":1})", Skip::unknown_phase},
    {R"({"ph":"X"})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":null})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":"soon"})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":NaN})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":{}})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":1e300})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":123456789012345678901234567890})", Skip::bad_timestamp},
    {R"({"ph":"X","ts":1,"dur":-1})", Skip::negative_duration},
    {R"({"ph":"X","ts":1,"dur":-0.001})", Skip::negative_duration},
    {R"({"ph":"X","ts":1,"dur":"long"})", Skip::bad_duration},
    {R"({"ph":"X","ts":1,"dur":[]})", Skip::bad_duration},
    {R"({"ph":"X","ts":4611686018427386,"dur":4611686018427386})", Skip::bad_duration},
    {R"({"ph" "X"})", Skip::bad_json},
    {R"({"ph":"X","ts":1,})", Skip::bad_json},
    {R"({"ph":"X" "ts":1})", Skip::bad_json},
    {"{\"ph\":\"X\",\"ts\":1,\"name\":\"a\nb\"}", Skip::bad_json},
    {"{\"ph\":\"X\",\"ts\":1,\"name\":\"\xff\xfe\"}", Skip::bad_utf8},
    {"{\"ph\":\"X\",\"ts\":1,\"name\":\"\xc3\"}", Skip::bad_utf8},
    {R"({"ph":"X","ts":1,"name":"\ud800"})", Skip::bad_json},
    {R"({"ph":"X","ts":1,"name":"C:\windows"})", Skip::bad_json},
};

TEST(KinetoFaultsTest, ABadRecordIsCountedUnderItsReasonAndThoseAroundItStay) {
  for (const Bad& bad : kBad) {
    const Reading reading = read_text(object_trace({kGood, bad.record, kGood}));
    EXPECT_FALSE(reading.error) << bad.record << ": " << reading.error->message;
    EXPECT_EQ(reading.counts.read, 3u) << bad.record;
    EXPECT_EQ(reading.records.size(), 2u) << bad.record;
    EXPECT_EQ(reading.skipped(bad.reason), 1u) << bad.record << " is not " << to_string(bad.reason);
    EXPECT_EQ(reading.counts.skipped_total(), 1u) << bad.record;
  }
}

TEST(KinetoFaultsTest, EveryReasonHasAName) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Skip::count); ++i) {
    EXPECT_FALSE(to_string(static_cast<Skip>(i)).empty()) << i;
  }
}

TEST(KinetoFaultsTest, DeepNestingIsSkippedOrRefused) {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  const Reading reading =
      read_text(object_trace({kGood, R"({"ph":"X","ts":1,"args":)" + deep + "}", kGood}));
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.skipped(Skip::too_deep), 1u);
  EXPECT_EQ(reading.records.size(), 2u);
  expect_one_sentence(read_text(std::string(1 << 22, '[')), "brackets without end");
  expect_one_sentence(read_text("{\"a\":" + std::string(1 << 22, '{')), "braces without end");
  EXPECT_FALSE(read_text(object_trace({}, ",\"x\":" + deep)).error);
}

TEST(KinetoFaultsTest, NestingWithinTheBoundIsRead) {
  const std::string record =
      R"({"ph":"X","ts":1,"args":{"a":)" + std::string(120, '[') + std::string(120, ']') + "}}";
  EXPECT_EQ(read_text(object_trace({record})).records.size(), 1u);
}

TEST(KinetoFaultsTest, AnEnormousStringIsPassedOverWithoutBeingHeld) {
  const std::string mebibyte = gzip(std::string(1 << 20, 'a'));
  std::string bomb = gzip("[" + std::string(kGood) + R"(,{"ph":"X","ts":1,"name":")");
  for (int i = 0; i < 256; ++i) bomb += mebibyte;  // some 270 KiB that unpack to 256 MiB
  bomb += gzip("\"}," + std::string(kGood) + "]");
  const InMemory file(bomb);
  const std::uint64_t before = resident_bytes_max();
  KinetoOptions options;
  options.memory_max = KinetoOptions::kMemoryMin;
  const Reading reading = read_records(file.path(), options);
  EXPECT_FALSE(reading.error);
  EXPECT_EQ(reading.skipped(Skip::too_large), 1u);
  EXPECT_EQ(reading.records.size(), 2u);
  EXPECT_LE(resident_bytes_max() - before, std::uint64_t{16} << 20);
}

TEST(KinetoFaultsTest, TextWithoutEndIsGivenUp) {
  KinetoOptions options;
  options.idle_bytes_max = 1 << 20;
  const std::string space(4 << 20, ' ');
  expect_one_sentence(read_text(space, options), "white space");
  expect_one_sentence(read_text("[" + std::string(kGood) + space + "]", options), "white space");
  expect_one_sentence(read_text("[\"" + std::string(4 << 20, 'x') + "\"]", options), "one string");
  EXPECT_FALSE(read_text("[" + std::string(kGood) + space + "]").error);
}

TEST(KinetoFaultsTest, TheIndexStaysWithinItsMemory) {
  std::vector<std::string> records;
  for (int i = 0; i < 120000; ++i) {
    records.push_back(R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":1,"args":)"
                      R"({"correlation":)" +
                      std::to_string(i) + "}}");
  }
  const std::string text = object_trace(records);
  KinetoOptions options;
  options.memory_max = KinetoOptions::kMemoryMin;
  const Mapping mapping = map_text(text, options);
  ASSERT_TRUE(mapping.error);
  EXPECT_EQ(mapping.error->code, Error::Code::no_memory);
  EXPECT_NE(mapping.error->message.find("--memory-max"), std::string::npos);
  EXPECT_FALSE(map_text(text).error);
}

TEST(KinetoFaultsTest, AnErrorIsGivenAgain) {
  const InMemory file("[" + std::string(kGood) + ",");
  auto reader = KinetoReader::open(file.path());
  KinetoRecord record;
  EXPECT_TRUE(reader.value().next(record).value());
  const auto first = reader.value().next(record);
  const auto second = reader.value().next(record);
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().message, second.error().message);
}

}  // namespace
}  // namespace ringmain::replay
