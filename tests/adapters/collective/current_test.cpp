// Does a library inside of a call read the operation that its thread calls for, and no other's?
#include <cstdlib>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"

namespace ringmain::tests {
namespace {

using collective::current_operation;
using collective::CurrentOperation;
using collective::Issued;
using collective::Ledger;

TEST(CurrentOperationTest, TheInnermostIsReadAndGoesWithItsScope) {
  EXPECT_EQ(current_operation(), 0u);
  {
    const CurrentOperation outer(7);
    EXPECT_EQ(current_operation(), 7u);
    {
      const CurrentOperation inner(8);
      EXPECT_EQ(current_operation(), 8u);
      const CurrentOperation nothing(0);
      EXPECT_EQ(current_operation(), 8u);
    }
    EXPECT_EQ(current_operation(), 7u);
  }
  EXPECT_EQ(current_operation(), 0u);
}

TEST(CurrentOperationTest, EachThreadHasItsOwn) {
  const CurrentOperation here(7);
  std::uint64_t before = 1, inside = 0;
  std::thread([&] {
    before = current_operation();
    const CurrentOperation there(9);
    inside = current_operation();
  }).join();
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(inside, 9u);
  EXPECT_EQ(current_operation(), 7u);
}

TEST(CurrentOperationTest, AMarkOfALedgerIsReadAsWell) {
  TestBus bus;
  const auto heard = bus.heard<Issued>();
  const auto ledger = Ledger::of(bus).value();
  const std::uint64_t op_id = ledger->issue(Issued{});
  {
    const Ledger::Inside inside(*ledger, op_id);
    EXPECT_EQ(current_operation(), op_id);
    const CurrentOperation set(op_id + 1);
    EXPECT_EQ(current_operation(), op_id + 1);
  }
  EXPECT_EQ(current_operation(), 0u);
}

TEST(CurrentOperationTest, AHookCallsForNoneAndItsCallerStillDoes) {
  const CurrentOperation set(7);
  {
    const Ledger::Outside hook;
    EXPECT_EQ(current_operation(), 0u);
    const CurrentOperation of_the_hook(8);
    EXPECT_EQ(current_operation(), 8u);
  }
  EXPECT_EQ(current_operation(), 7u);
}

TEST(CurrentOperationTest, APromiseIsOfTheInnermostAndGoesWithIt) {
  EXPECT_FALSE(collective::promise_end());
  const CurrentOperation outer(7);
  {
    const CurrentOperation inner(8);
    EXPECT_FALSE(inner.end_is_promised());
    EXPECT_TRUE(collective::promise_end());
    EXPECT_TRUE(inner.end_is_promised());
    {
      const Ledger::Outside hook;
      EXPECT_FALSE(collective::promise_end());
    }
    EXPECT_TRUE(inner.end_is_promised());
  }
  EXPECT_FALSE(outer.end_is_promised());
  EXPECT_TRUE(collective::promise_end());
  {
    const CurrentOperation inner(8);
    EXPECT_FALSE(inner.end_is_promised());
  }
  EXPECT_TRUE(outer.end_is_promised());
}

TEST(CurrentOperationTest, AForkedChildCallsForNone) {
  TestBus bus;
  const auto heard = bus.heard<Issued>();
  const auto ledger = Ledger::of(bus).value();
  const Ledger::Inside inside(*ledger, ledger->issue(Issued{}));
  const CurrentOperation set(7);
  const pid_t child = ::fork();
  if (child == 0) {
    if (current_operation() != 0) std::_Exit(1);
    const CurrentOperation own(9);
    std::_Exit(current_operation() == 9 ? 0 : 2);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(current_operation(), 7u);
}

}  // namespace
}  // namespace ringmain::tests
