// Are hooks called as they should be, whoever comes and goes meanwhile?
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Barrier;
using collective::Communicator;
using collective::CommunicatorOptions;
using collective::CompletionHookArgs;
using collective::Failed;
using collective::Hook;
using collective::HookOptions;
using collective::How;
using collective::Issued;
using collective::Ledger;
using collective::Operation;
using collective::OpName;
using collective::Outcome;
using collective::PostHookArgs;
using collective::PreHookArgs;

class CommunicatorHooksTest : public OnCommunicator {};

TEST_F(CommunicatorHooksTest, OneOperationIsOnePreAndOnePostWithOneId) {
  std::vector<std::uint64_t> before, after;
  const auto pre = comm_.pre_hook([&](const PreHookArgs& args) {
    EXPECT_EQ(args.name, OpName::all_reduce);
    EXPECT_EQ(args.op.view(), "all_reduce");
    EXPECT_EQ(std::get<collective::AllReduce>(*args.arguments).tensor.elements(), 4u);
    EXPECT_TRUE(args.async_op);
    EXPECT_EQ(*args.communicator, comm_);
    before.push_back(args.op_id);
    return Verdict::allow();
  });
  int work = 0;
  const auto post = comm_.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.work, &work);
    EXPECT_EQ(args.outcome, Outcome::issued);
    EXPECT_EQ(args.name, OpName::all_reduce);
    EXPECT_EQ(*args.communicator, comm_);
    after.push_back(args.op_id);
  });
  ASSERT_TRUE(pre && post);
  {
    auto issuing = comm_.issue(all_reduced());
    ASSERT_TRUE(issuing);
    EXPECT_EQ(before.size(), 1u);
    EXPECT_TRUE(after.empty());
    issuing.returned(&work);
    issuing.returned(&work);  // is over
  }
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before, after);
  EXPECT_NE(before[0], 0u);
}

TEST_F(CommunicatorHooksTest, IdsRiseAndNamesComeInTheOrderOfTheCalls) {
  std::vector<std::uint64_t> before, after;
  std::vector<OpName> names;
  const auto pre = comm_.pre_hook([&](const PreHookArgs& args) {
    before.push_back(args.op_id);
    names.push_back(args.name);
    return Verdict::allow();
  });
  const auto post = comm_.post_hook([&](const PostHookArgs& args) { after.push_back(args.op_id); });
  const collective::Arguments all[] = {all_reduced(),
                                       collective::Broadcast{four_floats(), 0, false}, Barrier{}};
  for (const auto& one : all) EXPECT_TRUE(comm_.run(one, [](const Operation&) {}));
  EXPECT_EQ(names, (std::vector{OpName::all_reduce, OpName::broadcast, OpName::barrier}));
  EXPECT_LT(before[0], before[1]);
  EXPECT_LT(before[1], before[2]);
  EXPECT_EQ(before, after);
}

TEST_F(CommunicatorHooksTest, TheyAreCalledByPriorityThenInOrderOfRegistration) {
  std::vector<int> order;
  std::vector<Hook> hooks;
  for (int i = 0; i < 16; ++i) {
    HookOptions options;
    options.priority = i % 4;
    hooks.push_back(std::move(comm_
                                  .pre_hook(
                                      [&order, i](const PreHookArgs&) {
                                        order.push_back(i);
                                        return Verdict::allow();
                                      },
                                      options)
                                  .value()));
  }
  EXPECT_TRUE(barrier());
  EXPECT_EQ(order, (std::vector{3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12}));
}

TEST_F(CommunicatorHooksTest, AVetoLeavesAPairedRecordAndTheFirstEndsTheCall) {
  Heard<Issued> issued(bus_);
  Heard<Failed> failed(bus_);
  std::vector<Outcome> outcomes;
  int second = 0;
  const auto pre =
      comm_.pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("not in this step")); });
  const auto other = comm_.pre_hook(counts(second));
  const auto post = comm_.post_hook([&](const PostHookArgs& args) {
    outcomes.push_back(args.outcome);
    EXPECT_EQ(args.reason.view(), "not in this step");
  });
  bool called = false;
  EXPECT_FALSE(comm_.run(all_reduced(), [&](const Operation&) { called = true; }));
  EXPECT_FALSE(called);
  auto issuing = comm_.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(), "not in this step");
  EXPECT_FALSE(issuing.operation().completed());
  ASSERT_EQ(issued.all().size(), 2u);
  ASSERT_EQ(failed.all().size(), 2u);
  EXPECT_EQ(issued.all()[0].op_id, failed.all()[0].op_id);
  EXPECT_EQ(failed.all()[0].how, How::vetoed);
  EXPECT_EQ(failed.all()[0].reason.view(), "not in this step");
  EXPECT_EQ(issued.all()[1].sequence, 2u);  // no hole
  EXPECT_EQ(outcomes, (std::vector{Outcome::refused, Outcome::refused}));
  EXPECT_EQ(second, 0);
}

TEST_F(CommunicatorHooksTest, APreHookThatThrowsRefusesWithItsWords) {
  const auto pre = comm_.pre_hook([](const PreHookArgs&) -> Verdict {
    throw std::runtime_error("NaN in the input of all_reduce");
  });
  EXPECT_EQ(comm_.issue(all_reduced()).reason().view(), "NaN in the input of all_reduce");
  const auto other =
      comm_.pre_hook([](const PreHookArgs&) -> Verdict { throw 7; }, {.priority = 1});
  EXPECT_EQ(comm_.issue(all_reduced()).reason().view(),
            "a pre hook threw what is no std::exception");
}

TEST_F(CommunicatorHooksTest, APostHookThatThrowsCostsTheCallerNothing) {
  int second = 0;
  const auto post =
      comm_.post_hook([](const PostHookArgs&) { throw std::runtime_error("a hook's own"); });
  const auto other = comm_.post_hook([&](const PostHookArgs&) { ++second; });
  bool called = false;
  EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation&) { called = true; }));
  EXPECT_TRUE(called);
  EXPECT_EQ(second, 1);
}

TEST_F(CommunicatorHooksTest, ABackendThatThrowsIsToldToPostHooks) {
  std::vector<std::string> reasons;
  const auto post = comm_.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.outcome, Outcome::threw);
    reasons.emplace_back(args.reason.view());
  });
  EXPECT_THROW(
      comm_.run(all_reduced(), [](const Operation&) { throw std::runtime_error("no route"); }),
      std::runtime_error);
  EXPECT_EQ(reasons, (std::vector<std::string>{"no route"}));
}

TEST_F(CommunicatorHooksTest, OneThatCannotBeAskedRefuses) {
  int calls = 0;
  Name deepest;
  const auto pre = comm_.pre_hook([&](const PreHookArgs&) {
    ++calls;
    auto issuing = comm_.issue(Barrier{});  // and so on
    if (!issuing && deepest == Name()) deepest = issuing.reason();
    return Verdict::allow();
  });
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(deepest.view(), "hooks are nested 8 deep in this thread, so no more can be asked");
}

TEST_F(CommunicatorHooksTest, WhatAHookCallsForIsAnOperationOfItsOwn) {
  Heard<Issued> issued(bus_);
  const auto ledger = Ledger::of(bus_).value();
  bool inside = false;
  const auto nested = [&] {
    EXPECT_EQ(ledger->mark(), 0u);
    if (!std::exchange(inside, true)) {
      EXPECT_TRUE(barrier());
    }
  };
  const auto pre = comm_.pre_hook([&](const PreHookArgs&) {
    nested();
    return Verdict::allow();
  });
  EXPECT_TRUE(comm_.run(all_reduced(), [](const Operation&) {}));
  inside = false;
  const auto post = comm_.post_hook([&](const PostHookArgs&) { nested(); });
  const auto completion = comm_.completion_hook([&](const CompletionHookArgs&) { nested(); });
  CommunicatorOptions below = world();
  below.name = "below";
  const auto inner = Communicator::make(bus_, below).value();
  const auto inner_pre = inner.pre_hook([&](const PreHookArgs&) {
    EXPECT_EQ(ledger->mark(), 0u);
    return Verdict::allow();
  });
  EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation& one) {
    EXPECT_TRUE(inner.run(all_reduced(), [](const Operation&) {}));
    EXPECT_EQ(ledger->mark(), one.id());
    EXPECT_TRUE(one.completed());
    EXPECT_EQ(ledger->mark(), one.id());
  }));
  EXPECT_EQ(issued.all().size(), 4u);
}

TEST_F(CommunicatorHooksTest, CompletionHooksHearEachEndOnceWhoeverSaysIt) {
  std::vector<std::uint64_t> ends;
  int failures = 0;
  CommunicatorOptions options = world();
  options.rank = 2;
  const auto other = Communicator::make(bus_, options).value();
  const auto hook = comm_.completion_hook([&](const CompletionHookArgs& args) {
    EXPECT_NE(args.completed == nullptr, args.failed == nullptr);
    if (args.failed != nullptr) ++failures;
    ends.push_back(args.op_id);
  });
  const auto ledger = Ledger::of(bus_).value();
  std::vector<Operation> all(4);
  for (Operation& one : all)
    EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation& issued) { one = issued; }));
  Operation elsewhere;
  EXPECT_TRUE(other.run(all_reduced(), [&](const Operation& issued) { elsewhere = issued; }));
  EXPECT_TRUE(elsewhere.completed());
  EXPECT_TRUE(all[2].completed());
  EXPECT_TRUE(ledger->completed(all[0].id()));  // NCCL's plugin, say
  EXPECT_FALSE(all[0].completed());
  EXPECT_TRUE(all[1].failed("late"));
  EXPECT_EQ(ends, (std::vector{all[2].id(), all[0].id(), all[1].id()}));
  comm_.end();
  EXPECT_EQ(ends.size(), 4u);
  EXPECT_EQ(failures, 2);
}

TEST_F(CommunicatorHooksTest, ABatchIsOneOperation) {
  std::vector<OpName> names;
  std::uint64_t parts = 0;
  (void)comm_.register_pre_hook([&](const PreHookArgs& args) {
    names.push_back(args.name);
    EXPECT_TRUE(args.async_op);
    parts = std::get<collective::BatchOpIssue>(*args.arguments).num_ops;
    return Verdict::allow();
  });
  EXPECT_TRUE(comm_.run(collective::BatchOpIssue{2, true}, [](const Operation&) {}));
  EXPECT_EQ(names, std::vector{OpName::batch_op_issue});
  EXPECT_EQ(parts, 2u);
}

TEST_F(CommunicatorHooksTest, AnEmptyFunctionIsRefused) {
  const auto hook = comm_.pre_hook(collective::PreHook());
  ASSERT_FALSE(hook);
  EXPECT_EQ(hook.error().message, "an empty function is no hook; give it one to call");
}

}  // namespace
}  // namespace ringmain::tests
