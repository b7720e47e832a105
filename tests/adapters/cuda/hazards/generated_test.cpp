// Do the verdicts equal those of brute force, for generated programs of several streams?
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/cuda/cuda_hazards.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/cuda/hazards/oracle.hpp"
#include "tests/adapters/cuda/hazards/program.hpp"

namespace ringmain::cuda::hazards {
namespace {

struct Judged {
  Account account;
  std::vector<Judgement> verdicts;
  Hazards::Figures figures;
};

template <class F>
Subscription subscribe(Bus& bus, F hear) {
  return bus.subscribe_ordered<
      step::Step, SourceNotice, StreamCreation, StreamDeletion, EventCreation, EventDeletion,
      EventRecord, EventWait, EventSynchronization, StreamSynchronization, DeviceSynchronization,
      MemoryAllocation, MemoryDeallocation, ContextEvent, Capture, BufferUse>(std::move(hear));
}

/// With `limits` there is little room.
Judged run_and_judge(const Program& program, Hazards::Limits limits) {
  Judged judged;
  fake_cuda_reset();
  fake_cupti_reset();
  (void)cudaFree(nullptr);  // the context is there
  TestBus bus;
  Source source;
  Subscription heard;
  Hazards hazards([&](const Judgement& verdict) { judged.verdicts.push_back(verdict); }, limits);
  const auto attach_source = [&] {
    auto made = Source::attach(bus, {.lane_events = 256});
    ASSERT_TRUE(made) << made.error().message;
    source = std::move(made).value();
  };
  const bool source_is_there = program.seed % 8 == 0;  // and only the checker comes late
  Subscription other;
  if (source_is_there) {
    other = subscribe(bus, [](const auto&) {});  // so that the source asks for all calls
    attach_source();
  }
  judged.account = run(program, bus, [&] {
    bus.deliver();  // what was before is not heard
    heard = subscribe(bus, [&](const auto& event) { hazards.hear(event); });
    if (!source_is_there) attach_source();
  });
  source.detach();
  bus.deliver();
  judged.figures = hazards.figures();
  return judged;
}

std::string name_of(const Pair& pair) {
  return "the accesses " + std::to_string(pair.earlier) + " and " + std::to_string(pair.later);
}

/// How many accesses, and lines, came before.
std::size_t accesses_before(const Account& account, std::size_t line) {
  return static_cast<std::size_t>(std::count_if(
      account.lines.begin(), account.lines.begin() + static_cast<std::ptrdiff_t>(line),
      [](const Line& one) { return one.what == What::access; }));
}

/// What is wrong with the verdicts, or "". `sound_only`: nothing may be missed by it.
std::string fault_of(const Judged& judged, bool sound_only) {
  const Account& account = judged.account;
  const std::size_t before = accesses_before(account, account.attached_at);
  std::set<std::pair<std::size_t, std::size_t>> races, truly, pairs;
  for (const Pair& pair : judge(account, false)) {
    pairs.insert({pair.earlier, pair.later});
    if (pair.race) truly.insert({pair.earlier, pair.later});
  }
  for (const Judgement& verdict : judged.verdicts) {
    const Pair pair{before + verdict.earlier.number - 1, before + verdict.later.number - 1,
                    verdict.race};
    if (pairs.count({pair.earlier, pair.later}) == 0) return name_of(pair) + " are no pair";
    if (verdict.race && truly.count({pair.earlier, pair.later}) == 0)
      return name_of(pair) + " are in order, and a race was told";
    if (verdict.race) races.insert({pair.earlier, pair.later});
  }
  if (sound_only) return "";
  std::vector<int> streams;
  std::vector<bool> unsized;
  for (const Line& line : account.lines) {
    if (line.what != What::access) continue;
    streams.push_back(line.stream);
    unsized.push_back(line.unsized);
  }
  for (const Pair& pair : judge(account, account.attached_at != 0)) {
    if (!pair.race || pair.earlier < before) continue;
    if (unsized[pair.earlier] || unsized[pair.later]) continue;  // how far it reaches is not known
    const bool told = std::any_of(races.begin(), races.end(), [&](const auto& race) {
      return race.second == pair.later && race.first >= pair.earlier &&
             streams[race.first] == streams[pair.earlier];
    });
    if (!told) return name_of(pair) + " race, and nothing was told";
  }
  return "";
}

std::string fault_of(const Program& program, Hazards::Limits limits, bool sound_only) {
  const Judged judged = run_and_judge(program, limits);
  return fault_of(judged, sound_only || judged.account.captured_then);
}

/// Leaves deeds out while the fault stays.
Program smaller(Program program, Hazards::Limits limits, bool sound_only) {
  for (std::size_t i = program.deeds.size(); i-- > 0;) {
    Program less = program;
    less.deeds.erase(less.deeds.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < less.attach_at) --less.attach_at;
    if (!fault_of(less, limits, sound_only).empty()) program = std::move(less);
  }
  return program;
}

TEST(GeneratedHazardsTest, AThousandProgramsAreJudgedAsByBruteForce) {
  std::size_t races = 0, ordered = 0, late_races = 0, unjudged = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Program program = make_program(seed);
    const Judged judged = run_and_judge(program, {});
    const std::string fault = fault_of(judged, judged.account.captured_then);
    ASSERT_EQ(fault, "") << to_text(program) << "\nsmaller:\n"
                         << to_text(smaller(program, {}, false));
    races += judged.figures.races;
    ordered += judged.figures.ordered;
    unjudged += judged.figures.unjudged;
    if (program.attach_at != 0) late_races += judged.figures.races;
  }
  // The programs are such as have something to find.
  EXPECT_GT(races, 10'000U);
  EXPECT_GT(ordered, 10'000U);
  EXPECT_GT(late_races, 1'000U);
  EXPECT_GT(unjudged, 1'000U);
}

TEST(GeneratedHazardsTest, WhereThereIsNoRoomNoRaceIsInvented) {
  std::uint64_t unkept = 0, races = 0;
  for (std::uint64_t seed = 1001; seed <= 1300; ++seed) {
    Program program = make_program(seed);
    const Hazards::Limits limits{static_cast<std::uint32_t>(3 + seed % 3),
                                 static_cast<std::uint32_t>(2 + seed % 2),
                                 static_cast<std::uint32_t>(6 + seed % 20)};
    const Judged judged = run_and_judge(program, limits);
    ASSERT_EQ(fault_of(judged, true), "") << to_text(program) << "\nsmaller:\n"
                                          << to_text(smaller(program, limits, true));
    unkept += judged.figures.unkept;
    races += judged.figures.races;
  }
  EXPECT_GT(unkept, 300U);
  EXPECT_GT(races, 100U);
}

}  // namespace
}  // namespace ringmain::cuda::hazards
