// Does the sink `alarms` write a sentence for each alarm and how many there were, and refuse what
// it cannot do in one sentence?
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "events/steps/source.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/registry.hpp"
#include "adapters/sources/cuda/cuda_alarm_options.hpp"
#include "adapters/sources/cuda/cuda_alarms.hpp"

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

class AlarmsSinkTest : public SourceFixture {
 protected:
  ~AlarmsSinkTest() override { std::filesystem::remove(file); }
  [[nodiscard]] std::string written() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("alarms." + std::to_string(::getpid()));
};

TEST_F(AlarmsSinkTest, ItWritesASentenceForEachAndTheCountAtTheEnd) {
  auto sink = registry::attach_sink(bus, "alarms:file=" + file.string(), "no.channel");
  ASSERT_TRUE(sink) << sink.error().message;
  Source source = attached(bus);
  auto steps = step::Source::attach(bus).value();
  for (std::uint64_t number = 4; number < 7; ++number) {
    const auto step = steps.step(number);
    ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  }
  cudaStream_t made = nullptr;
  ASSERT_EQ(cudaStreamCreate(&made), cudaSuccess);
  source.detach();
  ASSERT_TRUE(sink.value().close());
  std::ostringstream expected;
  const auto thread = std::to_string(run::this_tid());
  expected << "alarms: cudaEventSynchronize waits for event " << event << " in step 4, thread "
           << thread << "\nalarms: 1 stream of cudaStreamCreate was never deleted: " << made
           << ", made outside of steps by thread " << thread
           << "\nalarms: cudaEventSynchronize waits for event " << event << " in step 6, thread "
           << thread << "; 3 times in all"
           << "\nalarms: 3 synchronizations inside steps, 1 stream was never deleted\n";
  EXPECT_EQ(written(), expected.str());
  EXPECT_EQ(sink.value().not_arrived(), 0);
}

TEST_F(AlarmsSinkTest, WhereNothingWasHeardItDoesNotSayThatAllIsWell) {
  auto sink = registry::attach_sink(bus, "alarms:file=" + file.string());
  ASSERT_TRUE(sink) << sink.error().message;
  ASSERT_TRUE(sink.value().close());
  EXPECT_EQ(written(), "alarms: no call of CUDA's was heard, and so none was judged\n");
  EXPECT_FALSE(sink.value().attach(bus));  // it is closed
}

TEST_F(AlarmsSinkTest, WithoutAlarmsItSaysThatThereWereNoneAndWhatWasNotJudged) {
  const auto said = [&](const char* words, bool in_steps) {
    auto sink = registry::attach_sink(bus, "alarms:file=" + file.string() + words);
    EXPECT_TRUE(sink);
    auto steps = step::Source::attach(bus).value();
    {
      std::optional<decltype(steps.step(1))> inside;
      if (in_steps) inside.emplace(steps.step(1));
      (void)bus.channel<MemoryAllocation>().publish({});
    }
    EXPECT_TRUE(sink.value().close());
    return written();
  };
  EXPECT_EQ(said("", true), "alarms: none\n");
  EXPECT_EQ(said("", false),
            "alarms: none; no training step was told, which synchronizations and growth are judged "
            "by\n");
  EXPECT_EQ(said(",without=synchronization,without=growth", false), "alarms: none\n");
}

TEST_F(AlarmsSinkTest, WhatARecordingMadeWithoutHandlesIsNoLeak) {
  auto sink = registry::attach_sink(
      bus, "alarms:without=synchronization,without=growth,file=" + file.string());
  ASSERT_TRUE(sink) << sink.error().message;
  for (int times = 0; times < 20; ++times) {
    EventCreation event;
    event.result = 0;
    (void)bus.channel<EventCreation>().publish(event);
  }
  StreamCreation stream;
  stream.stream = kNoStream;
  stream.result = 0;
  (void)bus.channel<StreamCreation>().publish(stream);
  ASSERT_TRUE(sink.value().close());
  EXPECT_EQ(written(),
            "alarms: none; 21 events and streams came without a handle, as from a recording, and "
            "were not followed\n");
}

TEST_F(AlarmsSinkTest, AFileThatCannotBeWrittenIsAnErrorAtItsOpeningOrAtTheEnd) {
  EXPECT_FALSE(registry::attach_sink(bus, "alarms:file=/nowhere/at/all"));
  auto sink = registry::attach_sink(bus, "alarms:file=/dev/full");
  ASSERT_TRUE(sink) << sink.error().message;
  const auto closed = sink.value().close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("/dev/full"), std::string::npos);
  EXPECT_EQ(sink.value().not_arrived(), 1);
}

TEST(AlarmOptionsTest, WordsAreReadAndWhatIsWrongIsSaidInOneSentence) {
  const auto read = AlarmOptions::read(
      "allow=cudaEventSynchronize,allow=eval,warmup=0,rises=7,bytes=4096,without=races,file=/x");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read.value().allowed, (std::vector<std::string>{"cudaEventSynchronize", "eval"}));
  EXPECT_EQ(read.value().warmup_steps, 0);
  EXPECT_EQ(read.value().rising_steps, 7);
  EXPECT_EQ(read.value().rising_bytes, 4096);
  EXPECT_FALSE(read.value().races);
  EXPECT_TRUE(read.value().leaks);
  EXPECT_EQ(read.value().file, "/x");
  ASSERT_TRUE(AlarmOptions::read(""));
  const std::pair<const char*, const char*> wrong[] = {
      {"warmpu=3",
       "alarms takes allow=NAME, warmup=STEPS, rises=STEPS, bytes=BYTES, without=KIND "
       "and file=PATH, divided by commas, and not 'warmpu=3'; did you mean 'warmup'?"},
      {"rises=0",
       "alarms wants rises= with a number of steps from 1 to 1000000000, and not "
       "'rises=0'"},
      {"bytes=1M",
       "alarms wants bytes= with a number of bytes from 1 to 1125899906842624, and not "
       "'bytes=1M'"},
      {"without=leak",
       "alarms wants without= with synchronization, leaks, growth or races, and "
       "not 'without=leak'; did you mean 'leaks'?"},
      {"allow=",
       "alarms wants allow= with a call, such as allow=cudaEventSynchronize, or a phase "
       "of a step, and not 'allow='"},
      {"file=a.txt",
       "alarms wants file= with a whole path, such as file=/tmp/alarms-%r.txt, and "
       "not 'file=a.txt'"},
      {"warmup=1,warmup=2", "alarms takes warmup once, and here it is twice"},
      {"without=synchronization,without=leaks,without=growth,without=races",
       "no alarm is left: leave one of synchronization, leaks, growth and races"}};
  for (const auto& [words, sentence] : wrong) {
    const auto refused = AlarmOptions::read(words);
    ASSERT_FALSE(refused) << words;
    EXPECT_EQ(refused.error().message, sentence);
  }
}

TEST(AlarmSentenceTest, GrowthAndRacesAreSaidWithBothSides) {
  Alarm growth;
  growth.kind = AlarmKind::growth;
  growth.bytes = 4096;
  growth.step = 30;
  growth.api = Name("cudaMalloc");
  growth.thread = 9;
  EXPECT_EQ(sentence_of(growth),
            "live memory has grown by 4096 bytes up to step 30, in each of the last steps; the "
            "largest of it is by cudaMalloc, thread 9");
  Alarm race;
  race.kind = AlarmKind::race;
  race.bytes = 16;
  race.address = 0x7000;
  race.stream = 0;
  race.other_stream = 0x52;
  race.step = 2;
  race.thread = 3;
  race.other_thread = 4;
  race.api = Name("fill");
  race.count = 5;
  EXPECT_EQ(sentence_of(race),
            "nothing orders fill on the legacy default stream (in step 2, thread 3) after a use on "
            "stream 0x52 (outside of steps, thread 4); both use 16 bytes at 0x7000; 5 times in "
            "all");
}

}  // namespace
}  // namespace ringmain::cuda
