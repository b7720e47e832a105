// What may a backend say better than its arguments, and what if it cannot leave a call out?
#include <cstdint>

#include <gtest/gtest.h>

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::CommunicatorOptions;
using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Ledger;
using collective::Outcome;
using collective::PostHookArgs;
using collective::PreHookArgs;

CommunicatorOptions world() {
  CommunicatorOptions options;
  options.name = "world";
  options.backend = "loopback";
  options.source = "test";
  options.rank = 1;
  options.size = 4;
  return options;
}

TEST(CommunicatorBackendTest, WhatItSaysItselfIsPublishedUnderTheCommunicatorsName) {
  Bus bus;
  Heard<Issued> issued(bus);
  const Communicator comm = Communicator::make(bus, world()).value();
  comm.issue(collective::Barrier{}).returned();
  Issued said;
  said.op = Name("neighbor_all_gather");
  said.in_elements = 1;
  said.out_elements = 2;
  said.bytes = 8;
  said.dtype = Name("int32");
  said.peer = 3;
  said.group = Name("another");  // not read, as the next ones
  said.rank = 9;
  said.sequence = 77;
  comm.issue(collective::Other{"neighbor_all_gather"}, said).returned();
  const Issued heard = issued.all().at(1);
  EXPECT_EQ(heard.op.view(), "neighbor_all_gather");
  EXPECT_EQ(heard.in_elements, 1u);
  EXPECT_EQ(heard.out_elements, 2u);
  EXPECT_EQ(heard.bytes, 8u);
  EXPECT_EQ(heard.dtype.view(), "int32");
  EXPECT_EQ(heard.peer, 3);
  EXPECT_EQ(heard.group.view(), "world");
  EXPECT_EQ(heard.backend.view(), "loopback");
  EXPECT_EQ(heard.source.view(), "test");
  EXPECT_EQ(heard.rank, 1);
  EXPECT_EQ(heard.group_size, 4);
  EXPECT_EQ(heard.sequence, 2u);
}

TEST(CommunicatorBackendTest, OneThatFollowsNoVetoHearsWhyAndGoesOn) {
  Bus bus;
  Heard<Failed> failed(bus);
  Heard<Completed> completed(bus);
  auto options = world();
  options.follows_vetoes = false;
  const Communicator comm = Communicator::make(bus, options).value();
  const auto no = comm.pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("no")); });
  int posts = 0;
  const auto after = comm.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.outcome, Outcome::issued);
    ++posts;
  });
  auto issuing = comm.issue(collective::Barrier{});
  EXPECT_TRUE(issuing);
  EXPECT_EQ(issuing.reason().view(), "no");
  issuing.returned();
  EXPECT_TRUE(issuing.operation().completed());
  EXPECT_EQ(posts, 1);
  EXPECT_TRUE(failed.all().empty());
  EXPECT_EQ(completed.all().size(), 1u);
}

TEST(CommunicatorBackendTest, OneThatNumbersItsOperationsItselfSaysTheirSequences) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<collective::Group> groups(bus);
  auto options = world();
  options.counts = false;
  const Communicator comm = Communicator::make(bus, options).value();
  Issued said;
  said.sequence = 77;
  said.backend = Name("of this call");
  comm.issue(collective::Barrier{}, said).returned();
  comm.issue(collective::Barrier{}).returned();
  EXPECT_EQ(issued.all().at(0).sequence, 77u);
  EXPECT_EQ(issued.all().at(0).backend.view(), "of this call");
  EXPECT_EQ(issued.all().at(1).sequence, 0u);
  comm.end({.operations = 5});
  EXPECT_EQ(groups.all().back().operations, 5u);
}

TEST(CommunicatorBackendTest, WhatNobodyEndsIsNotLeftOpenAndCanFailUntilItsCallIsOver) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Failed> failed(bus);
  Heard<Completed> completed(bus);
  const auto ledger = Ledger::of(bus).value();
  const Communicator comm = Communicator::make(bus, world()).value();
  {
    auto issuing = comm.issue(collective::Barrier{}, {}, {.ends = false});
    EXPECT_EQ(ledger->mark(), issuing.operation().id());
    EXPECT_EQ(current_operation(), issuing.operation().id());
    issuing.returned();
    EXPECT_EQ(ledger->mark(), 0u);
    EXPECT_EQ(ledger->figures().open, 0u);
    EXPECT_FALSE(issuing.operation().completed());
  }
  comm.issue(collective::Barrier{}, {}, {.ends = false}).threw("no such type");
  const auto no = comm.pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("no")); });
  const auto refused = comm.issue(collective::Barrier{}, {}, {.ends = false});
  EXPECT_TRUE(!refused && refused.vetoed());
  EXPECT_EQ(issued.all().size(), 3u);
  EXPECT_TRUE(completed.all().empty());
  ASSERT_EQ(failed.all().size(), 2u);
  EXPECT_EQ(failed.all()[0].how, How::error);
  EXPECT_EQ(failed.all()[1].how, How::vetoed);
  EXPECT_EQ(ledger->figures().open, 0u);
}

TEST(CommunicatorBackendTest, WhatASourceInsidePromisedToEndIsLeftOpenForIt) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  const auto ledger = Ledger::of(bus).value();
  const Communicator outer = Communicator::make(bus, world()).value();
  const Communicator inner = Communicator::make(bus, world()).value();
  for (const bool promises : {true, false}) {
    Issued said;
    said.op = Name("barrier");
    auto issuing = outer.issue(collective::Barrier{}, said, {.ends = false});
    const std::uint64_t id = issuing.operation().id();
    {
      auto wrapped = inner.issue(collective::Barrier{}, said);
      EXPECT_EQ(wrapped.operation().id(), id);
      const CurrentOperation current(id);
      EXPECT_EQ(ledger->marked_as(said.op), id);  // as the innermost asks
      EXPECT_TRUE(!promises || promise_end());
    }
    issuing.returned();
    EXPECT_EQ(current_operation(), 0u);
    EXPECT_EQ(ledger->completed(id), promises);
  }
  EXPECT_EQ(issued.all().size(), 2u);
  EXPECT_EQ(completed.all().size(), 1u);
}

TEST(CommunicatorBackendTest, WhatWasPromisedOfAnotherOperationIsNotOfThisOne) {
  Bus bus;
  Heard<Issued> issued(bus);
  const auto ledger = Ledger::of(bus).value();
  const Communicator outer = Communicator::make(bus, world()).value();
  auto issuing = outer.issue(collective::Barrier{}, {}, {.ends = false});
  {
    const CurrentOperation another(issuing.operation().id() + 1);
    EXPECT_TRUE(promise_end());
  }
  issuing.returned();
  EXPECT_EQ(ledger->figures().open, 0u);
}

TEST(CommunicatorBackendTest, AnInnerOneThatNobodyEndsLeavesTheOuterOneOpen) {
  Bus bus;
  Heard<Completed> completed(bus);
  const Communicator outer = Communicator::make(bus, world()).value();
  const Communicator inner = Communicator::make(bus, world()).value();
  Issued said;
  said.op = Name("barrier");
  auto issuing = outer.issue(collective::Barrier{}, said);
  inner.issue(collective::Barrier{}, said, {.ends = false}).returned();
  issuing.returned();
  EXPECT_TRUE(issuing.operation().completed());
  EXPECT_EQ(completed.all().size(), 1u);
}

TEST(CommunicatorBackendTest, HooksAreNotCalledWhereTheArgumentsAreNotFilledIn) {
  Bus bus;
  Heard<Issued> issued(bus);
  const Communicator comm = Communicator::make(bus, world()).value();
  EXPECT_TRUE(comm.heard());
  EXPECT_FALSE(comm.shows_arguments());
  int calls = 0;
  const auto before = comm.pre_hook([&](const PreHookArgs&) {
    ++calls;
    return Verdict::allow();
  });
  const auto after = comm.post_hook([&](const PostHookArgs&) { ++calls; });
  EXPECT_TRUE(comm.shows_arguments());  // and who asked before does not know that yet
  comm.issue(collective::Other{"barrier"}, {}, {.shown = false}).returned();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(issued.all().size(), 1u);
  comm.issue(collective::Barrier{}, {}, {}).returned();
  EXPECT_EQ(calls, 2);
}

TEST(CommunicatorBackendTest, ItIsHeardBySubscribersAndByHooksOfItsOwn) {
  Bus bus;
  const Communicator comm = Communicator::make(bus, world()).value();
  EXPECT_FALSE(comm.heard());
  {
    const Heard<Failed> failed(bus);
    EXPECT_TRUE(comm.heard());
  }
  {
    const Heard<collective::Shapes> shapes(bus);
    EXPECT_TRUE(comm.heard() && comm.shows_arguments());
  }
  EXPECT_FALSE(comm.heard());
  const Communicator other = Communicator::make(bus, world()).value();
  const auto after = other.post_hook([](const PostHookArgs&) {});
  EXPECT_TRUE(other.heard() && !comm.heard());
  EXPECT_FALSE(Communicator().heard() || Communicator().shows_arguments());
}

TEST(CommunicatorBackendTest, AnEndMayLeaveWhatIsUnderWayToWhoSaysItsEnd) {
  Bus bus;
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  const Communicator comm = Communicator::make(bus, world()).value();
  auto first = comm.issue(collective::Barrier{});
  first.returned();
  comm.end({.cancels = false});
  EXPECT_TRUE(first.operation().completed());
  const auto refused = comm.issue(collective::Barrier{});
  EXPECT_TRUE(!refused && !refused.vetoed());
  const Communicator other = Communicator::make(bus, world()).value();
  auto second = other.issue(collective::Barrier{});
  second.returned();
  other.end({.reason = "destroyed"});
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].how, How::cancelled);
  EXPECT_EQ(failed.all()[0].reason.view(), "destroyed");
  EXPECT_EQ(completed.all().size(), 1u);
}

TEST(CommunicatorBackendTest, AMarkThatIsTakenAwayMakesWhatFollowsAnOperationOfItsOwn) {
  Bus bus;
  Heard<Issued> issued(bus);
  const auto ledger = Ledger::of(bus).value();
  const Communicator comm = Communicator::make(bus, world()).value();
  auto outer = comm.issue(collective::AllReduce{});
  EXPECT_NE(ledger->mark(), 0u);
  outer.unmark();
  EXPECT_EQ(ledger->mark(), 0u);
  comm.issue(collective::Barrier{}).returned();
  outer.returned();
  EXPECT_EQ(issued.all().size(), 2u);
}

TEST(CommunicatorBackendTest, ACallThatFailsSaysTheVendorsCodeOnce) {
  Bus bus;
  Heard<Failed> failed(bus);
  const Communicator comm = Communicator::make(bus, world()).value();
  int threw = 0;
  const auto after = comm.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.reason.view(), "invalid datatype");
    if (args.outcome == Outcome::threw) ++threw;
  });
  {
    auto issuing = comm.issue(collective::Barrier{});
    Failed what;
    what.reason = Name("invalid datatype");
    what.result = 3;
    issuing.threw(what);
  }
  EXPECT_EQ(threw, 1);
  ASSERT_EQ(failed.all().size(), 1u);
  const Failed said = failed.all()[0];
  EXPECT_EQ(said.result, 3);
  EXPECT_EQ(said.how, How::error);
  EXPECT_EQ(said.group.view(), "world");
  EXPECT_GT(said.thread, 0);
}

TEST(CommunicatorBackendTest, ASourceLearnsThatSomebodyHooksOrHears) {
  Bus bus;
  const auto ledger = Ledger::of(bus).value();
  const Communicator comm = Communicator::make(bus, world()).value();
  EXPECT_FALSE(ledger->hooked_or_heard());
  {
    const Heard<Failed> failed(bus);
    EXPECT_TRUE(ledger->hooked_or_heard());
  }
  EXPECT_FALSE(ledger->hooked_or_heard());
  const auto after = comm.post_hook([](const PostHookArgs&) {});
  EXPECT_TRUE(ledger->hooked_or_heard());
  EXPECT_FALSE(ledger->heard());
}

}  // namespace
}  // namespace ringmain::tests
