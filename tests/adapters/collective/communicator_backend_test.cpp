// What may a backend say better than its arguments, and what if it cannot leave a call out?
#include <cstdint>

#include <gtest/gtest.h>

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
