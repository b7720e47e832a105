// Are the words after `cuda:` read as written, and is a wrong one answered in one sentence?
#include "adapters/sources/cuda/cuda_options.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ringmain::cuda {
namespace {

Options read(std::string_view written) {
  const auto options = Options::read(written);
  EXPECT_TRUE(options) << written << ": " << (options ? "" : options.error().message);
  return options ? options.value() : Options{};
}

std::string fault(std::string_view written) {
  const auto options = Options::read(written);
  EXPECT_FALSE(options) << written;
  if (options) return "";
  EXPECT_EQ(options.error().code, Error::Code::refused) << written;
  EXPECT_EQ(options.error().message.find('\n'), std::string::npos) << written;
  return options.error().message;
}

constexpr std::string_view kTakes =
    "cuda takes hold, own, driver, wrapped, lossless, lane=EVENTS, handles=NUMBER and cupti=PATH, "
    "divided "
    "by commas, and not ";

TEST(CudaOptionsTest, WithoutWordsTheDefaultsHold) {
  const Options options = read("");
  EXPECT_FALSE(options.hold || options.own || options.driver_only || options.lossless ||
               options.wrapped_only);
  EXPECT_EQ(options.lane_events, 8192u);
  EXPECT_EQ(options.handles, 65536u);
  EXPECT_EQ(options.cupti, "");
}

TEST(CudaOptionsTest, EachWordSetsItsOwnFieldOnly) {
  const auto flags = [](const Options& o) {
    return std::string{o.hold ? 'h' : '-', o.own ? 'o' : '-', o.driver_only ? 'd' : '-',
                       o.lossless ? 'l' : '-', o.wrapped_only ? 'w' : '-'};
  };
  EXPECT_EQ(flags(read("hold")), "h----");
  EXPECT_EQ(flags(read("own")), "-o---");
  EXPECT_EQ(flags(read("driver")), "--d--");
  EXPECT_EQ(flags(read("lossless")), "---l-");
  EXPECT_EQ(flags(read("wrapped")), "----w");
  EXPECT_EQ(flags(read("lane=100")), "-----");
  EXPECT_EQ(read("lane=100").lane_events, 100u);
  EXPECT_EQ(read("lane=100").handles, 65536u);
  EXPECT_EQ(read("handles=5000").handles, 5000u);
  EXPECT_EQ(read("handles=5000").lane_events, 8192u);
  EXPECT_EQ(read("cupti=/opt/a=b/libcupti.so.13").cupti, "/opt/a=b/libcupti.so.13");
  const Options all =
      read("lossless,wrapped,cupti=/c.so,driver,handles=1024,own,lane=1048576,hold");
  EXPECT_EQ(flags(all), "hodlw");
  EXPECT_EQ(all.lane_events, 1048576u);
  EXPECT_EQ(all.handles, 1024u);
  EXPECT_EQ(all.cupti, "/c.so");
}

TEST(CudaOptionsTest, ANumberHasItsLimits) {
  EXPECT_EQ(read("lane=64").lane_events, Options::kLaneEventsMin);
  EXPECT_EQ(read("lane=1048576").lane_events, Options::kLaneEventsMax);
  EXPECT_EQ(read("handles=16777216").handles, Options::kHandlesMax);
  for (const char* wrong : {"lane", "lane=", "lane=63", "lane=1048577", "lane=-1", "lane=+64",
                            "lane=64k", "lane= 64", "lane=0x80", "lane=99999999999999999999"}) {
    EXPECT_EQ(fault(wrong),
              "cuda wants lane= with a number of events from 64 to 1048576, and not '" +
                  std::string(wrong) + "'");
  }
  for (const char* wrong : {"handles=1023", "handles=16777217", "handles=many"}) {
    EXPECT_EQ(fault(wrong),
              "cuda wants handles= with a number of handles from 1024 to 16777216, and not '" +
                  std::string(wrong) + "'");
  }
}

TEST(CudaOptionsTest, ANumberOfAStructHasTheSameLimits) {
  const auto fault = [](const Options& options) {
    const auto error = options.fault();
    if (!error) return std::string();
    EXPECT_EQ(error->code, Error::Code::refused);
    return error->message;
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({.lane_events = Options::kLaneEventsMin, .handles = Options::kHandlesMin}), "");
  EXPECT_EQ(fault({.lane_events = Options::kLaneEventsMax, .handles = Options::kHandlesMax}), "");
  for (const std::uint32_t wrong : {0u, 63u, 1048577u, 4294967295u}) {
    EXPECT_EQ(fault({.lane_events = wrong}), "cuda::Options::lane_events is " +
                                                 std::to_string(wrong) +
                                                 ": give it a number of events from 64 to 1048576");
  }
  for (const std::uint32_t wrong : {0u, 1023u, 16777217u, 4294967295u}) {
    EXPECT_EQ(fault({.handles = wrong}), "cuda::Options::handles is " + std::to_string(wrong) +
                                             ": give it a number of handles from 1024 to 16777216");
  }
}

TEST(CudaOptionsTest, AnUnknownWordIsAnsweredWithTheNearest) {
  EXPECT_EQ(fault("hodl"), std::string(kTakes) + "'hodl'; did you mean 'hold'?");
  EXPECT_EQ(fault("lanes=100"), std::string(kTakes) + "'lanes=100'; did you mean 'lane'?");
  EXPECT_EQ(fault("hold,drivers"), std::string(kTakes) + "'drivers'; did you mean 'driver'?");
  EXPECT_EQ(fault("LOSSLESS"), std::string(kTakes) + "'LOSSLESS'");
  EXPECT_EQ(fault("everything"), std::string(kTakes) + "'everything'");
  for (const char* empty : {",", "hold,", ",hold", "hold,,own"})
    EXPECT_EQ(fault(empty), std::string(kTakes) + "''") << empty;
  EXPECT_EQ(fault("=1"), std::string(kTakes) + "'=1'");
}

TEST(CudaOptionsTest, AFlagHasNoValueAndNoWordStandsTwice) {
  EXPECT_EQ(fault("hold=1"), "cuda takes hold without a value, and not 'hold=1'");
  EXPECT_EQ(fault("own="), "cuda takes own without a value, and not 'own='");
  EXPECT_EQ(fault("own,hold,own"), "cuda takes own once, and here it is twice");
  EXPECT_EQ(fault("lane=64,lane=64"), "cuda takes lane once, and here it is twice");
}

TEST(CudaOptionsTest, APathIsAWholeOne) {
  for (const char* wrong : {"cupti", "cupti=", "cupti=libcupti.so.13", "cupti=./libcupti.so",
                            "cupti=/usr/local/cuda/lib64/"}) {
    EXPECT_EQ(fault(wrong),
              "cuda wants cupti= with the whole path of the library, such as "
              "cupti=/usr/local/cuda/lib64/libcupti.so.13, and not '" +
                  std::string(wrong) + "'");
  }
}

TEST(CudaOptionsTest, ASentenceStaysShortAndOnOneLine) {
  EXPECT_EQ(fault("a\nb\x1b[31m"), std::string(kTakes) + "'a?b?[31m'");
  EXPECT_EQ(fault(std::string(5000, 'x')), std::string(kTakes) + "'" + std::string(64, 'x') + "…'");
}

}  // namespace
}  // namespace ringmain::cuda
