// Is an operation that waits for its work to begin told apart from one whose work hangs?
#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"

namespace ringmain::tests {
namespace {

using collective::Issued;
using collective::Ledger;
using std::chrono::hours;

constexpr auto kNow = nanoseconds(-1);  // everything is open for longer than that

TEST(OverdueTest, BeforeItBeginsItCountsFromTheIssueAndThenFromTheStart) {
  TestBus bus;
  const auto heard = bus.heard<Issued>();
  const auto ledger = Ledger::of(bus).value();
  Issued what;
  what.op = Name("all_reduce");
  what.group = Name("dp");
  what.rank = 3;
  const std::uint64_t waits = ledger->issue(what);
  const std::uint64_t hangs = ledger->issue(what);
  EXPECT_TRUE(ledger->started(hangs));
  const std::uint64_t done = ledger->issue(what);
  EXPECT_TRUE(ledger->completed(done));

  const auto before = ledger->overdue(kNow, hours(1));
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].op_id, waits);
  EXPECT_FALSE(before[0].has_begun);
  EXPECT_GE(before[0].waits_ns, 0);
  EXPECT_EQ(before[0].op.view(), "all_reduce");
  EXPECT_EQ(before[0].group.view(), "dp");
  EXPECT_EQ(before[0].rank, 3);
  const auto after = ledger->overdue(hours(1), kNow);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].op_id, hangs);
  EXPECT_TRUE(after[0].has_begun);
  EXPECT_EQ(ledger->overdue(kNow, kNow).size(), 2u);
  EXPECT_TRUE(ledger->overdue(hours(1), hours(1)).empty());

  // Nothing was failed by that: whoever gives it up says so.
  collective::Failed given_up;
  given_up.how = collective::How::timed_out;
  EXPECT_TRUE(ledger->failed(waits, given_up));
  EXPECT_TRUE(ledger->completed(hangs));
  EXPECT_TRUE(ledger->overdue(kNow, kNow).empty());
}

}  // namespace
}  // namespace ringmain::tests
