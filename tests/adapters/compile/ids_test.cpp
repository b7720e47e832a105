// Are Dynamo's ids read as PyTorch writes them, and hostile ones refused?
#include "adapters/sources/compile/ids.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::compile {
namespace {

Id id(std::int32_t frame, std::int32_t recompile, std::int32_t autograd = -1,
      std::uint32_t attempt = 0) {
  Id made;
  made.frame = frame;
  made.recompile = recompile;
  made.autograd = autograd;
  made.attempt = attempt;
  return made;
}

TEST(CompileIdTest, IdsAreReadAsPyTorchWritesThem) {
  EXPECT_EQ(parse_id("0/1"), id(0, 1));
  EXPECT_EQ(parse_id("[17/0]"), id(17, 0));
  EXPECT_EQ(parse_id("!0/1/0"), id(1, 0, 0));
  EXPECT_EQ(parse_id("!3"), id(-1, -1, 3));
  EXPECT_EQ(parse_id("4/1_2"), id(4, 1, -1, 2));
  EXPECT_EQ(parse_id("None"), Id{});
  EXPECT_EQ(parse_id(""), Id{});
  EXPECT_EQ(parse_id("2147483647/0"), id(2147483647, 0));
}

TEST(CompileIdTest, WhatIsNoIdIsRefused) {
  for (const char* const text : {"0",
                                 "/",
                                 "0/",
                                 "/0",
                                 "0//1",
                                 "-1/0",
                                 "0/-1",
                                 "+0/1",
                                 " 0/1",
                                 "0/1 ",
                                 "0 /1",
                                 "!",
                                 "!/0/1",
                                 "!0/1",
                                 "!0/",
                                 "!-1/0/0",
                                 "!0/1/2/3",
                                 "0/1/2",
                                 "[0/1",
                                 "0/1]",
                                 "[",
                                 "]",
                                 "[]]",
                                 "none",
                                 "None/0",
                                 "0/1_",
                                 "0/1_x",
                                 "0/1_-1",
                                 "0/1_0_0",
                                 "2147483648/0",
                                 "0/99999999999999999999",
                                 "0x1/2",
                                 "1e3/0",
                                 "\xff/\xfe",
                                 "0\xc2\xa0/1"}) {
    EXPECT_EQ(parse_id(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_id(std::string_view("0/1\0", 4)), std::nullopt);
  EXPECT_EQ(parse_id(std::string(1 << 20, '9') + "/0"), std::nullopt);
}

TEST(CompileIdTest, EveryStringIsReadOrRefused) {
  std::mt19937 random(7);
  const std::string_view letters = "0123456789/!_[]None -\xff";
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += letters[random() % letters.size()];
    const auto read = parse_id(text);
    if (!read) continue;
    EXPECT_GE(read->frame, -1) << text;
    EXPECT_EQ(read->frame < 0, read->recompile < 0) << text;
  }
}

TEST(CompileEventsTest, EachHasItsChannelAndFitsInPlace) {
  EXPECT_EQ(schema<Start>().name, "compile.start");
  EXPECT_EQ(schema<End>().name, "compile.end");
  EXPECT_EQ(schema<Graph>().name, "compile.graph");
  EXPECT_EQ(schema<GraphBreak>().name, "compile.graph_break");
  EXPECT_EQ(schema<Guard>().name, "compile.guard");
  EXPECT_EQ(schema<Recompile>().name, "compile.recompile");
  EXPECT_EQ(schema<DynamicShape>().name, "compile.dynamic_shape");
  EXPECT_EQ(schema<Cache>().name, "compile.cache");
  EXPECT_EQ(schema<Backend>().name, "compile.backend");
  EXPECT_EQ(schema<Phase>().name, "compile.phase");
  EXPECT_EQ(schema<Limit>().name, "compile.limit");
  EXPECT_EQ(schema<Reset>().name, "compile.reset");
  EXPECT_EQ(schema<Metrics>().name, "compile.metrics");
  EXPECT_EQ(schema<Wait>().name, "compile.wait");
}

TEST(CompileEventsTest, TriggersHaveTheNumbersOfPyTorchsOwn) {
  EXPECT_EQ(static_cast<int>(Trigger::dynamo), 1);
  EXPECT_EQ(static_cast<int>(Trigger::lazy_backward), 2);
  EXPECT_EQ(static_cast<int>(Trigger::triton_autotuning), 3);
  EXPECT_EQ(static_cast<int>(Trigger::cudagraph_recording), 4);
}

}  // namespace
}  // namespace ringmain::compile
