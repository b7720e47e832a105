// Whichever call of the driver's fails, once or from then on: each ticket that was given ends once,
// and the figures balance.
#include <atomic>
#include <string>
#include <vector>

#include "adapters/sources/cuda/completions_core.hpp"

#include "tests/adapters/cuda/completions_fixture.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;

/// Answers `result` at the n-th call, or from it on. The fixture's own calls are not counted.
struct Fault {
  std::uint64_t at;
  int result;
  bool lasts;
  std::atomic<std::uint64_t> calls{0};
  static int answer(const char*, void* with) {
    auto& fault = *static_cast<Fault*>(with);
    const std::uint64_t n = fault.calls++;
    return n == fault.at || (fault.lasts && n > fault.at) ? fault.result : -1;
  }
};

struct Case {
  Strategy strategy;
  int result;
  bool lasts;
};
class CompletionsFaultsTest : public CompletionsFixture, public testing::WithParamInterface<Case> {
 protected:
  /// True: the fault's call was among those that were made.
  bool run(std::uint64_t at) {
    Fault fault{at, GetParam().result, GetParam().lasts, {}};
    const Heard heard(bus);
    fake_cuda_script(&Fault::answer, &fault);
    auto made = Completions::make(
        bus, {.strategy = GetParam().strategy, .lane_tickets = 4, .watch_us = microseconds(1)});
    std::uint64_t given = 0;
    if (made) {
      Completions completions = std::move(made).value();
      for (std::uint64_t tag = 1; tag <= 3; ++tag) given += completions.arm(stream, tag) ? 1 : 0;
      EXPECT_EQ(completions.end(minutes(10)), Detached::done);
      fake_cuda_script(nullptr, nullptr);
      EXPECT_EQ(completions.figures().armed, given);
      EXPECT_EQ(completions.figures().pending, 0U);
      expect_balanced(completions, heard);
      EXPECT_EQ(heard.size(), given);
    }
    fake_cuda_script(nullptr, nullptr);
    return fault.calls > at;
  }
};

TEST_P(CompletionsFaultsTest, EachCallOfTheDriversMayFail) {
  std::uint64_t at = 0;
  while (run(at)) ++at;
  EXPECT_GT(at, 15U);  // as many calls are made at least
}
INSTANTIATE_TEST_SUITE_P(
    , CompletionsFaultsTest,
    testing::Values(
        Case{Strategy::memory_writes, 1, false}, Case{Strategy::memory_writes, 700, true},
        Case{Strategy::memory_writes, 900, true}, Case{Strategy::automatic, 2, false},
        Case{Strategy::automatic, 999, true}, Case{Strategy::event_queries, 1, false},
        Case{Strategy::event_queries, 700, true}, Case{Strategy::event_queries, 900, false},
        Case{Strategy::host_functions, 1, false}, Case{Strategy::host_functions, 719, true}),
    [](const auto& tested) {
      return std::string(to_string(tested.param.strategy)) + "_" +
             std::to_string(tested.param.result) + (tested.param.lasts ? "_lasting" : "_once");
    });

TEST(CompletionsCoreTest, AContextThatWasMadeAnewAtTheSameAddressIsAnother) {
  static unsigned long long id = 1;
  Driver driver;
  driver.context_id = [](void*, unsigned long long* to) { return *to = id, 0; };
  driver.stream_query = [](void*) { return 0; };
  CompletionsCore core(driver, {});
  core.context_id = id;
  EXPECT_EQ(core.ask(), kDone);
  ++id;
  EXPECT_EQ(core.ask(), kContextGone);
}

/// An event that is of no use fails its ticket alone.
TEST_F(CompletionsFixture, AnEventThatAnswersWithAnErrorForEverFailsItsTicketAlone) {
  const Heard heard(bus);
  Completions completions = made({.strategy = Strategy::event_queries});
  fake_cuda_fail("cuEventQuery", 400, 3);
  ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::failed);
  EXPECT_EQ(heard.all()[0].result, 400);
  ASSERT_TRUE(completions.arm(stream, 2));
  ASSERT_TRUE(heard.await(2));
  EXPECT_EQ(heard.all()[1].outcome, Outcome::completed);
  expect_balanced(completions, heard);
}

TEST_F(CompletionsFixture, OneAnswerOfTheDriversIsNotTakenForAnError) {
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  const std::uint64_t held = fake_cuda_hold(stream);
  fake_cuda_fail("cuStreamQuery", 999, 1);
  ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(tests::eventually([&] { return completions.figures().asked > 4; }));
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::completed);
  EXPECT_EQ(completions.figures().result, 0);
}

}  // namespace
}  // namespace ringmain::cuda
