// Is a log read record by record, however its bytes come, and does damage cost no more than what it
// hit?
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/compile/dynamo/md5.hpp"
#include "adapters/sources/compile/log_reader.hpp"

#include "tests/adapters/compile/tap_rig.hpp"

namespace ringmain::compile {
namespace {

std::string line(const std::string& json, int ms = 0) {
  return "V1121 19:33:36." + std::to_string(100 + ms % 900) +
         "000 8124 torch/_dynamo/utils.py:2350] " + json + "\n";
}
std::string record(const std::string& kind, const std::string& value, const std::string& keys,
                   const std::string& payload = "") {
  std::string json = "{\"" + kind + "\": " + value + (keys.empty() ? "" : ", " + keys);
  if (payload.empty()) return line(json + "}");
  std::string made = line(json + ", \"has_payload\": \"" + md5_hex(payload) + "\"}");
  made += '\t';
  for (const char c : payload) made += c == '\n' ? std::string("\n\t") : std::string(1, c);
  return made + "\n";
}

/// A compile with a break, its rest, a recompile, a backward: every kind that is read.
std::string sample() {
  const auto event = [](const char* letter, const char* name) {
    return std::string("{\n\"name\": \"") + name + "\",\n\"ts\": 1795289616710407.5,\n\"ph\": \"" +
           letter + "\",\n\"args\": {}\n}";
  };
  return record("str", R"(["/src/m.py", 1])", "") +
         record("chromium_event", "{}", at(0, 0), event("B", "dynamo")) +
         record("dynamo_start", R"({"stack": [{"line": 38, "name": "f", "filename": 1}]})",
                at(0, 0)) +
         record("artifact", R"({"name": "dynamo_graph_break_reason", "encoding": "string"})",
                at(0, 0),
                "Graph break in user code at /src/m.py:40\nGraph Break Reason: no\n  Hint: "
                "/gb/gb7\n") +
         record("dynamo_output_graph", "{}", at(0, 0, 1),
                "def forward(self, a: \"f32[3]\"):\n    b = a + 1\n    return b") +
         record("dynamo_cpp_guards_str", "{}", at(0, 0, 1),
                "+- TENSOR_MATCH: x\nGuard latency = 4.2 us") +
         record("artifact", R"({"name": "fx_graph_cache_miss"})", at(0, 0, 1), R"({"key": "k"})") +
         record("create_symbol", R"({"symbol": "s0", "val": "5"})", at(0, 0, 1)) +
         record("compilation_metrics", R"({"duration_us": 5, "fail_type": null})", at(0, 0, 1)) +
         record("chromium_event", "{}", at(0, 0), event("E", "dynamo")) +
         record("dynamo_start",
                R"({"stack": [{"name": "torch_dynamo_resume_in_f_at_40", "filename": 1}]})",
                at(1, 0)) +
         record("artifact", R"({"name": "recompile_reasons"})", at(0, 1),
                "[\"0/0: k == 2  # x\"]") +
         record("new_kind_of_the_future", "{}", at(1, 0));
}

struct LogRig : TapRig {
  LogReader reader{tap};
  void read(const std::string& bytes, std::size_t piece = 1 << 20) {
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      (void)reader.feed(std::string_view(bytes).substr(i, piece));
    }
    reader.finish();
    bus.deliver();
  }
  void expect_books_to_balance() {
    const LogCounts& log = reader.counts();
    const TraceCounts counts = tap.counts();
    const auto skipped = [&log](LogSkip why) { return log.skipped[static_cast<std::size_t>(why)]; };
    EXPECT_EQ(counts.read, log.given);
    EXPECT_EQ(counts.read, counts.mapped + counts.passed + counts.skipped_total());
    EXPECT_EQ(log.records,
              log.given + skipped(LogSkip::damaged_payload) + skipped(LogSkip::too_large));
  }
};

TEST(CompileLogTest, SumsAreThoseOfTheRfc) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(md5_hex(std::string(8, '1') + std::string(72, 'x')).size(), 32u);
}

TEST(CompileLogTest, EveryRecordIsReadInPiecesOfAnySize) {
  for (const std::size_t piece : {1u, 7u, 100u, 1u << 20}) {
    LogRig rig;
    rig.read(sample(), piece);
    EXPECT_EQ(rig.reader.counts().records, 13u);
    EXPECT_EQ(rig.reader.counts().with_payload, 7u);
    EXPECT_EQ(rig.reader.counts().skipped_total(), 0u);
    EXPECT_EQ(rig.tap.counts().mapped, 12u);
    EXPECT_EQ(rig.tap.counts().passed, 1u);
    EXPECT_EQ(rig.starts.size(), 2u);
    EXPECT_EQ(rig.ends.size(), 1u);
    EXPECT_EQ(rig.breaks.size(), 2u);
    EXPECT_EQ(rig.graphs[0].ops, 1);
    EXPECT_EQ(rig.recompiles.size(), 1u);
    rig.expect_books_to_balance();
  }
}

TEST(CompileLogTest, ADamagedPayloadIsCountedAndTheNextRecordIsRead) {
  std::string log = sample();
  log.replace(log.find("Graph Break Reason"), 5, "graph");
  LogRig rig;
  rig.read(log);
  EXPECT_EQ(rig.reader.counts().skipped[static_cast<std::size_t>(LogSkip::damaged_payload)], 1u);
  EXPECT_TRUE(rig.breaks.empty());
  EXPECT_EQ(rig.graphs.size(), 1u);
  rig.expect_books_to_balance();
}

TEST(CompileLogTest, LinesThatAreNoRecordsAreCounted) {
  LogRig rig;
  rig.read("\tpayload of nobody\nsome banner\nV9999 99:99:99.0 x] {}\n" + sample() +
           "\n[rank3]:" + record("str", R"(["/b.py", 2])", "") + "V1121 19:33");
  EXPECT_EQ(rig.reader.counts().records, 14u);
  EXPECT_EQ(rig.reader.counts().skipped[static_cast<std::size_t>(LogSkip::orphan_payload)], 1u);
  EXPECT_EQ(rig.reader.counts().skipped[static_cast<std::size_t>(LogSkip::not_a_record)], 4u);
  rig.expect_books_to_balance();
}

TEST(CompileLogTest, ReadingEndsWhereItsOwnerWantsIt) {
  TapRig rig;
  std::vector<std::int64_t> times;
  LogReader reader(rig.tap, [&times](std::int64_t time_ns) {
    times.push_back(time_ns);
    return times.size() < 3;
  });
  EXPECT_FALSE(reader.feed(sample()));
  reader.finish();
  EXPECT_EQ(rig.tap.counts().read, 2u);
  EXPECT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0],
            ((((304 + 20) * 24LL + 19) * 60 + 33) * 60 + 36) * 1'000'000'000 + 100'000'000);
}

TEST(CompileLogTest, AnyCutLeavesWhatIsWholeAndBooksThatBalance) {
  const std::string log = sample();
  for (std::size_t bytes = 0; bytes < log.size(); bytes += 3) {
    LogRig rig;
    rig.read(log.substr(0, bytes));
    rig.expect_books_to_balance();
  }
}

TEST(CompileLogTest, FlippedBitsHarmNobodyAndAreCounted) {
  const std::string log = sample();
  std::mt19937 random(5);
  for (int round = 0; round < 1500; ++round) {
    std::string copy = log;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) {
      copy[random() % copy.size()] ^= static_cast<char>(1u << random() % 8);
    }
    LogRig rig;
    rig.read(copy);
    rig.expect_books_to_balance();
  }
}

TEST(CompileLogTest, RecordsOfAnythingHarmNobody) {
  const std::vector<std::string> values{"{}",
                                        "[]",
                                        "3",
                                        "-1",
                                        "1e400",
                                        "null",
                                        "\"x\"",
                                        "true",
                                        R"({"stack": [3, {}], "name": 4})",
                                        "[[[[]]]]",
                                        R"({"name": "recompile_reasons"})",
                                        "18446744073709551615"};
  std::mt19937 random(3);
  LogRig rig;
  const auto pick = [&] { return values[random() % values.size()]; };
  for (int round = 0; round < 4000; ++round) {
    const auto kinds = TraceTap::wanted();
    rig.tap.record("{\"" + std::string(kinds[random() % kinds.size()]) + "\": " + pick() +
                       ", \"frame_id\": " + pick() + ", \"frame_compile_id\": " + pick() +
                       ", \"attempt\": " + pick() + ", \"compiled_autograd_id\": " + pick() + "}",
                   random() % 2 == 0 ? pick() : "");
    rig.bus.deliver();
  }
  EXPECT_EQ(rig.tap.counts().read, 4000u);
}

}  // namespace
}  // namespace ringmain::compile
