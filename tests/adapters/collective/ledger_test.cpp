// Has each operation one id, one beginning and one end, and does each event say what is known?
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"

#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Ledger;
using collective::Started;

class LedgerTest : public testing::Test {
 protected:
  Bus bus_;
  std::shared_ptr<Ledger> ledger_ = Ledger::of(bus_).value();
};

Issued all_reduce() {
  Issued what;
  what.sequence = 7;
  what.bytes = 4096;
  what.correlation = 11;
  what.stream = 5;
  what.op = Name("all_reduce");
  what.group = Name("world");
  what.dtype = Name("float32");
  what.backend = Name("gloo");
  what.source = Name("torch");
  what.peer = 3;
  what.rank = 1;
  what.group_size = 4;
  what.device = 2;
  return what;
}

/// The fields that every word on it has.
template <class E>
void expect_all_reduce(const E& said, std::uint64_t op_id) {
  EXPECT_EQ(said.op_id, op_id);
  EXPECT_EQ(said.sequence, 7u);
  EXPECT_EQ(said.bytes, 4096u);
  EXPECT_EQ(said.stream, 5u);
  EXPECT_EQ(said.op.view(), "all_reduce");
  EXPECT_EQ(said.group.view(), "world");
  EXPECT_EQ(said.backend.view(), "gloo");
  EXPECT_EQ(said.source.view(), "torch");
  EXPECT_EQ(said.rank, 1);
  EXPECT_EQ(said.group_size, 4);
  EXPECT_EQ(said.device, 2);
}

TEST_F(LedgerTest, ItsWordsHaveOneIdAndWhatWasSaidWhenItWasIssued) {
  Heard<Issued> issued(bus_);
  Heard<Started> started(bus_);
  Heard<Completed> completed(bus_);
  const std::uint64_t id = ledger_->issue(all_reduce());
  ASSERT_NE(id, 0u);
  EXPECT_TRUE(ledger_->started(id));
  EXPECT_TRUE(ledger_->completed(id));
  ASSERT_EQ(issued.all().size(), 1u);
  ASSERT_EQ(started.all().size(), 1u);
  ASSERT_EQ(completed.all().size(), 1u);
  expect_all_reduce(issued.all()[0], id);
  EXPECT_NE(issued.all()[0].thread, 0);
  expect_all_reduce(started.all()[0], id);
  EXPECT_EQ(started.all()[0].correlation, 11u);
  EXPECT_GT(started.all()[0].queued_ns, 0);
  expect_all_reduce(completed.all()[0], id);
  EXPECT_EQ(completed.all()[0].dtype.view(), "float32");
  EXPECT_EQ(completed.all()[0].queued_ns, started.all()[0].queued_ns);
  EXPECT_GT(completed.all()[0].duration_ns, 0);
}

TEST_F(LedgerTest, WhatAReporterSaysStandsOverWhatWasSaidBefore) {
  Heard<Completed> completed(bus_);
  const std::uint64_t id = ledger_->issue(all_reduce());
  Completed what;
  what.op_id = id + 1;  // not read
  what.bytes = 17;
  what.duration_ns = 1234;
  what.queued_ns = 99;
  what.kernel = Name("ncclDevKernel_AllReduce");
  what.source = Name("nccl");
  what.stream = 0;
  EXPECT_TRUE(ledger_->completed(id, what));
  const Completed said = completed.all().at(0);
  EXPECT_EQ(said.op_id, id);
  EXPECT_EQ(said.bytes, 17u);
  EXPECT_EQ(said.duration_ns, 1234);
  EXPECT_EQ(said.queued_ns, 99);
  EXPECT_EQ(said.kernel.view(), "ncclDevKernel_AllReduce");
  EXPECT_EQ(said.source.view(), "nccl");
  EXPECT_EQ(said.stream, 0u);
  EXPECT_EQ(said.group.view(), "world");
}

TEST_F(LedgerTest, ThatNothingCameIsNoSilenceAboutIt) {
  Heard<Completed> completed(bus_);
  Completed nothing;
  nothing.bytes = collective::kNoBytes;
  EXPECT_TRUE(ledger_->completed(ledger_->issue(all_reduce()), nothing));
  EXPECT_EQ(completed.all().at(0).bytes, 0u);
}

TEST_F(LedgerTest, AFailureSaysAllThatIsKnown) {
  Heard<Failed> failed(bus_);
  const std::uint64_t id = ledger_->issue(all_reduce());
  Failed what;
  what.how = How::timed_out;
  what.reason = Name("600 s");
  EXPECT_TRUE(ledger_->failed(id, what));
  ASSERT_EQ(failed.all().size(), 1u);
  expect_all_reduce(failed.all()[0], id);
  EXPECT_EQ(failed.all()[0].how, How::timed_out);
  EXPECT_EQ(failed.all()[0].reason.view(), "600 s");
  EXPECT_EQ(failed.all()[0].peer, 3);
  EXPECT_GT(failed.all()[0].elapsed_ns, 0);
}

TEST_F(LedgerTest, ItEndsOnceAndBeginsOnceAtMost) {
  Heard<Started> started(bus_);
  Heard<Completed> completed(bus_);
  Heard<Failed> failed(bus_);
  const std::uint64_t id = ledger_->issue(all_reduce());
  EXPECT_TRUE(ledger_->started(id));
  EXPECT_FALSE(ledger_->started(id));
  EXPECT_TRUE(ledger_->completed(id));
  EXPECT_FALSE(ledger_->completed(id));
  EXPECT_FALSE(ledger_->failed(id, {}));
  EXPECT_FALSE(ledger_->started(id));
  EXPECT_FALSE(ledger_->completed(id + 1'000'000));
  EXPECT_EQ(started.all().size(), 1u);
  EXPECT_EQ(completed.all().size(), 1u);
  EXPECT_TRUE(failed.all().empty());
  EXPECT_EQ(ledger_->figures().late, 5u);
  EXPECT_EQ(ledger_->figures().open, 0u);
}

TEST_F(LedgerTest, WhereNobodyListensItHasNoIdAndItsWordsAreHarmless) {
  EXPECT_FALSE(ledger_->heard());
  EXPECT_EQ(ledger_->issue(all_reduce()), 0u);
  EXPECT_FALSE(ledger_->started(0));
  EXPECT_FALSE(ledger_->completed(0));
  EXPECT_FALSE(ledger_->failed(0, {}));
  Heard<Completed> completed(bus_);  // comes too late for it
  EXPECT_FALSE(ledger_->completed(0));
  EXPECT_TRUE(completed.all().empty());
  EXPECT_EQ(ledger_->figures().issued, 0u);
  EXPECT_EQ(ledger_->figures().late, 0u);
}

TEST_F(LedgerTest, AnyOfTheFourChannelsIsListening) {
  {
    const Heard<Issued> one(bus_);
    EXPECT_TRUE(ledger_->heard());
  }
  {
    const Heard<Started> one(bus_);
    EXPECT_TRUE(ledger_->heard());
  }
  {
    const Heard<Completed> one(bus_);
    EXPECT_TRUE(ledger_->heard());
  }
  {
    const Heard<Failed> one(bus_);
    EXPECT_TRUE(ledger_->heard());
  }
  EXPECT_FALSE(ledger_->heard());
}

TEST_F(LedgerTest, WhatItHasNoRoomForFailsAsUnknownAndIsCounted) {
  Heard<Issued> issued(bus_);
  Heard<Completed> completed(bus_);
  Heard<Failed> failed(bus_);
  std::set<std::uint64_t> open;
  // One more than there are places.
  for (std::uint32_t i = 0; i <= 2 * Ledger::kOpenMax; ++i)
    EXPECT_TRUE(open.insert(ledger_->issue(all_reduce())).second);
  const std::size_t all = open.size();
  ASSERT_FALSE(failed.all().empty());
  for (const Failed& one : failed.all()) {
    EXPECT_EQ(open.erase(one.op_id), 1u);
    EXPECT_EQ(one.how, How::unknown);
    EXPECT_NE(one.reason.view(), "");
    EXPECT_FALSE(ledger_->completed(one.op_id));
  }
  EXPECT_GE(open.size(), Ledger::kOpenMax);
  EXPECT_EQ(ledger_->figures().unknown, all - open.size());
  EXPECT_EQ(ledger_->figures().open, open.size());
  for (const std::uint64_t id : open) EXPECT_TRUE(ledger_->completed(id));
  EXPECT_EQ(completed.all().size(), open.size());
  EXPECT_EQ(issued.all().size(), all);
  EXPECT_EQ(ledger_->figures().open, 0u);
}

TEST_F(LedgerTest, WhoHearsThatItIsIssuedMayEndItAtOnce) {
  Heard<Completed> completed(bus_);
  bool begun = false, ended = false, again = true;
  const Subscription ends = bus_.channel<Issued>().subscribe_inline([&](const Issued& said) {
    begun = ledger_->started(said.op_id);
    ended = ledger_->completed(said.op_id);
    again = ledger_->completed(said.op_id);
  });
  const std::uint64_t id = ledger_->issue(all_reduce());
  EXPECT_TRUE(begun);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(again);
  EXPECT_FALSE(ledger_->completed(id));
  ASSERT_EQ(completed.all().size(), 1u);
  expect_all_reduce(completed.all()[0], id);
  EXPECT_GE(completed.all()[0].duration_ns, 0);
  EXPECT_EQ(ledger_->figures().open, 0u);
}

// Or its failure would be said before it is, and what is kept of a dead process had it open for
// ever.
TEST_F(LedgerTest, AGroupsEndInTheMiddleOfItsIssueLeavesItAlone) {
  std::uint32_t cancelled = 1;
  const Subscription ends = bus_.channel<Issued>().subscribe_inline(
      [&](const Issued&) { cancelled = ledger_->end_group(Name("world"), Name("destroyed")); });
  const std::uint64_t id = ledger_->issue(all_reduce());
  EXPECT_EQ(cancelled, 0u);
  EXPECT_TRUE(ledger_->completed(id));
}

TEST_F(LedgerTest, AGroupsEndCancelsWhatIsOpenInIt) {
  Heard<Failed> failed(bus_);
  Issued other = all_reduce();
  other.group = Name("pipeline");
  const std::uint64_t done = ledger_->issue(all_reduce());
  const std::uint64_t open = ledger_->issue(all_reduce());
  const std::uint64_t elsewhere = ledger_->issue(other);
  EXPECT_TRUE(ledger_->completed(done));
  EXPECT_EQ(ledger_->end_group(Name("world"), Name("destroyed")), 1u);
  EXPECT_EQ(ledger_->end_group(Name("world"), Name("destroyed")), 0u);
  ASSERT_EQ(failed.all().size(), 1u);
  expect_all_reduce(failed.all()[0], open);
  EXPECT_EQ(failed.all()[0].how, How::cancelled);
  EXPECT_EQ(failed.all()[0].reason.view(), "destroyed");
  EXPECT_FALSE(ledger_->completed(open));
  EXPECT_TRUE(ledger_->completed(elsewhere));
}

TEST_F(LedgerTest, TheOutermostOperationMarksItsThread) {
  Heard<Issued> issued(bus_);
  EXPECT_EQ(ledger_->mark(), 0u);
  {
    const std::uint64_t outer = ledger_->issue(all_reduce());
    const Ledger::Inside marked(*ledger_, outer);
    EXPECT_EQ(ledger_->mark(), outer);
    std::thread([&] { EXPECT_EQ(ledger_->mark(), 0u); }).join();
    {
      const Ledger::Inside inner(*ledger_, ledger_->issue(all_reduce()));
      EXPECT_EQ(ledger_->mark(), outer);
    }
    EXPECT_EQ(ledger_->mark(), outer);
  }
  EXPECT_EQ(ledger_->mark(), 0u);
  const Ledger::Inside unheard(*ledger_, 0);
  EXPECT_EQ(ledger_->mark(), 0u);
}

TEST_F(LedgerTest, AnotherBusHasMarksOfItsOwn) {
  Heard<Issued> issued(bus_);
  Bus other_bus;
  Heard<Issued> other_issued(other_bus);
  const auto other = Ledger::of(other_bus).value();
  const std::uint64_t outer = ledger_->issue(all_reduce());
  const Ledger::Inside marked(*ledger_, outer);
  EXPECT_EQ(other->mark(), 0u);
  {
    const std::uint64_t inner = other->issue(all_reduce());
    EXPECT_NE(inner, outer);
    const Ledger::Inside also(*other, inner);
    EXPECT_EQ(other->mark(), inner);
  }
  EXPECT_EQ(ledger_->mark(), outer);
}

TEST(LedgersTest, ABusHasOneWhoeverAsks) {
  Bus bus, other;
  const auto first = Ledger::of(bus).value();
  EXPECT_EQ(Ledger::of(bus).value(), first);
  EXPECT_NE(Ledger::of(other).value(), first);
}

TEST(LedgersTest, ItOutlivesItsBusAndHearsNobodyThen) {
  std::shared_ptr<Ledger> ledger;
  std::uint64_t open = 0;
  {
    Bus bus;
    const Heard<Issued> issued(bus);
    ledger = Ledger::of(bus).value();
    open = ledger->issue(all_reduce());
  }
  EXPECT_FALSE(ledger->heard());
  EXPECT_EQ(ledger->issue(all_reduce()), 0u);
  EXPECT_TRUE(ledger->completed(open));
}

TEST(LedgersTest, AForkAtAnyMomentLeavesTheChildALedgerOfItsOwn) {
  Bus bus;
  Heard<Issued> issued(bus);
  auto ledger = Ledger::of(bus).value();
  const std::uint64_t open = ledger->issue(all_reduce());
  std::atomic<bool> asking{true};
  std::thread other([&] {
    while (asking) (void)Ledger::of(bus).value();
  });
  for (int i = 0; i < 64; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // where it would wait for ever
      (void)ledger->completed(open);
      ledger.reset();
      TestBus own;  // TSan lets no thread begin in such a child
      const auto heard = own.heard<Issued>();
      const auto mine = Ledger::of(own).value();
      const bool issued_here = mine->issue(all_reduce()) != 0;
      (void)own.deliver();
      std::_Exit(issued_here && heard.size() == 1 ? 0 : 1);
    }
    int how = 0;
    EXPECT_EQ(::waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 0);
  }
  asking = false;
  other.join();
  EXPECT_TRUE(ledger->completed(open));
}

struct NoIssued {
  int at = 0;
};
constexpr auto describe(EventOf<NoIssued>) {
  return event("collective.issued", field<&NoIssued::at>("at"));
}

TEST(LedgersTest, AnotherEventOfThatNameIsAConflict) {
  Bus bus;
  (void)bus.channel<NoIssued>();
  const auto ledger = Ledger::of(bus);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().code, Error::Code::conflict);
  EXPECT_NE(ledger.error().message.find("collective.issued"), std::string::npos);
}

}  // namespace
}  // namespace ringmain::tests
