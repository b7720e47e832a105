// Is an operation told to whoever has come before it, though others were passed over as unheard?
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "adapters/sources/collective/collective_watchdog.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"

namespace ringmain::tests {
namespace {

using collective::Barrier;
using collective::Completed;
using collective::Failed;
using collective::Hook;
using collective::Issued;
using collective::Shapes;
using collective::Started;

class QuietTest : public OnCommunicator {
 protected:
  /// Nobody hears of it; the second is passed over at one look.
  void two_unheard() {
    EXPECT_EQ(issue(all_reduced()).id(), 0u);
    EXPECT_EQ(issue(all_reduced()).id(), 0u);
  }
};

/// Someone who comes; what is returned keeps it there.
struct Comer {
  const char* name;
  std::function<std::shared_ptr<void>(Bus&, const collective::Communicator&)> come;
};
void PrintTo(const Comer& comer, std::ostream* to) {
  *to << comer.name;
}
template <class E>
std::shared_ptr<void> subscribes(Bus& bus, const collective::Communicator&) {
  return std::make_shared<Subscription>(bus.channel<E>().subscribe([](const E&) {}));
}
std::shared_ptr<void> held(Result<Hook> hook) {
  return std::make_shared<Hook>(std::move(hook).value());
}

class QuietUntilTest : public QuietTest, public testing::WithParamInterface<Comer> {};

TEST_P(QuietUntilTest, TheNextOperationIsToldAndOnceTheyHaveLeftItIsQuietAgain) {
  two_unheard();
  for (int again = 0; again < 2; ++again) {
    const auto comer = GetParam().come(bus_, comm_);
    EXPECT_NE(issue(all_reduced()).id(), 0u);
    EXPECT_NE(issue(all_reduced()).id(), 0u);
  }
  two_unheard();
}

const auto allows = [](const collective::PreHookArgs&) { return Verdict::allow(); };
INSTANTIATE_TEST_SUITE_P(
    Comers, QuietUntilTest,
    testing::Values(
        Comer{"issued", subscribes<Issued>}, Comer{"started", subscribes<Started>},
        Comer{"completed", subscribes<Completed>}, Comer{"failed", subscribes<Failed>},
        Comer{"shapes", subscribes<Shapes>},
        Comer{"pattern",
              [](Bus& bus, const auto&) {
                return std::make_shared<Subscription>(
                    bus.subscribe("collective.*", [](const EventView&) {}));
              }},
        Comer{"inline",
              [](Bus& bus, const auto&) {
                return std::make_shared<Subscription>(
                    bus.channel<Issued>().subscribe_inline([](const Issued&) {}));
              }},
        Comer{"mailbox",
              [](Bus& bus, const auto&) {
                return std::make_shared<Mailbox<Issued>>(bus.channel<Issued>().mailbox());
              }},
        Comer{"pre_hook", [](Bus&, const auto& comm) { return held(comm.pre_hook(allows)); }},
        Comer{"post_hook",
              [](Bus&, const auto& comm) {
                return held(comm.post_hook([](const collective::PostHookArgs&) {}));
              }},
        Comer{"completion_hook",
              [](Bus&, const auto& comm) {
                return held(comm.completion_hook([](const collective::CompletionHookArgs&) {}));
              }},
        Comer{"watchdog",
              [](Bus& bus, const auto&) {
                return std::make_shared<collective::Watchdog>(
                    collective::Watchdog::make(bus, {.period = {}}).value());
              }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(QuietTest, WhoComesElsewhereMakesItLookAgainAndNothingElse) {
  two_unheard();
  const auto elsewhere = bus_.channel<collective::Group>().subscribe([](const auto&) {});
  two_unheard();
  auto other = world();
  other.name = "other";
  const auto hooked = collective::Communicator::make(bus_, other).value();
  const auto hook = hooked.pre_hook(allows);
  two_unheard();
  const auto issued = bus_.channel<Issued>().subscribe([](const Issued&) {});
  EXPECT_NE(hooked.issue(Barrier{}).operation().id(), 0u);
}

TEST_F(QuietTest, WhatIsPassedOverIsCountedWithWhatIsTold) {
  two_unheard();
  std::uint64_t sequence = 0;
  {
    const auto heard = bus_.channel<Issued>().subscribe_inline(
        [&sequence](const Issued& one) { sequence = one.sequence; });
    (void)issue(all_reduced());
    EXPECT_EQ(sequence, 3u);
  }
  two_unheard();
  const auto heard = bus_.channel<Issued>().subscribe_inline(
      [&sequence](const Issued& one) { sequence = one.sequence; });
  (void)issue(all_reduced());
  EXPECT_EQ(sequence, 6u);
}

TEST_F(QuietTest, OneThatHasEndedRefusesAlsoAfterOperationsThatNobodyHeard) {
  two_unheard();
  comm_.end();
  EXPECT_FALSE(barrier());
  EXPECT_FALSE(barrier());
}

TEST_F(QuietTest, OneThatWasAbortedRefusesAlsoAfterOperationsThatNobodyHeard) {
  auto options = world();
  options.abort = [](Name) {};
  comm_ = collective::Communicator::make(bus_, options).value();
  two_unheard();
  EXPECT_EQ(comm_.abort("x").how, collective::Aborted::How::done);
  EXPECT_FALSE(barrier());
  EXPECT_FALSE(barrier());
}

TEST_F(QuietTest, WhatWasIssuedUnheardEndsUnheardThoughSomebodyHasComeSince) {
  const auto operation = issue(all_reduced());
  int ends = 0;
  const auto heard =
      bus_.channel<Completed>().subscribe_inline([&ends](const Completed&) { ++ends; });
  EXPECT_FALSE(operation.completed());
  EXPECT_EQ(ends, 0);
}

}  // namespace
}  // namespace ringmain::tests
