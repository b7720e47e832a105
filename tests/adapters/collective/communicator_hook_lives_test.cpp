// Do hooks come, go and pass on to the parts of a group as they should?
#include <array>
#include <atomic>
#include <cstddef>
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
using collective::Group;
using collective::GroupChange;
using collective::Hook;
using collective::Operation;
using collective::OpName;
using collective::PostHookArgs;
using collective::PreHookArgs;
using collective::RemovableHandle;

class CommunicatorHookLivesTest : public OnCommunicator {};

TEST_F(CommunicatorHookLivesTest, WhatARemovedOneHoldsIsLetGoAtOnce) {
  const auto held = std::make_shared<int>(0);
  Hook pre =
      std::move(comm_.pre_hook([held](const PreHookArgs&) { return Verdict::allow(); }).value());
  Hook post = std::move(comm_.post_hook([held](const PostHookArgs&) {}).value());
  Hook completion = std::move(comm_.completion_hook([held](const CompletionHookArgs&) {}).value());
  RemovableHandle abort =
      comm_.register_abort_hook([held](const collective::AbortHookArgs&) {}).value();
  ASSERT_TRUE(barrier());
  EXPECT_GT(held.use_count(), 4);
  EXPECT_EQ(pre.reset(), Detached::done);
  EXPECT_EQ(post.reset(), Detached::done);
  EXPECT_EQ(completion.reset(), Detached::done);
  EXPECT_EQ(abort.remove(), Detached::done);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CommunicatorHookLivesTest, ARemovedOneIsCalledNoMore) {
  int calls = 0;
  Hook hook = std::move(comm_.pre_hook(counts(calls)).value());
  EXPECT_TRUE(hook.attached());
  EXPECT_TRUE(barrier());
  EXPECT_EQ(hook.reset(), Detached::done);
  EXPECT_FALSE(hook.attached());
  EXPECT_EQ(hook.reset(), Detached::was_not_attached);
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 1);
  { const auto scoped = comm_.pre_hook(counts(calls)); }
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 1);
}

TEST_F(CommunicatorHookLivesTest, DroppingAHandleKeepsTheHookAndRemovingItIsForGood) {
  int calls = 0;
  { (void)comm_.register_pre_hook(counts(calls)); }
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 1);
  const RemovableHandle handle = comm_.register_pre_hook(counts(calls)).value();
  const RemovableHandle copy = handle;
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(handle.remove(), Detached::done);
  EXPECT_EQ(copy.remove(), Detached::was_not_attached);
  EXPECT_FALSE(copy.attached());
  EXPECT_TRUE(barrier());
  EXPECT_EQ(calls, 4);
}

TEST_F(CommunicatorHookLivesTest, AHandleSurvivesItsCommunicator) {
  int calls = 0;
  const auto captured = std::make_shared<int>(0);
  RemovableHandle handle;
  {
    CommunicatorOptions options = world();
    options.name = "short";
    const auto comm = Communicator::make(bus_, options).value();
    handle = comm.register_pre_hook([captured, &calls](const PreHookArgs&) {
                   ++calls;
                   return Verdict::allow();
                 })
                 .value();
  }
  EXPECT_EQ(calls, 0);
  (void)handle.remove();
  EXPECT_EQ(handle.remove(), Detached::was_not_attached);
  handle = {};
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(CommunicatorHookLivesTest, OneMayRemoveItselfAndOthersAndBringNewOnes) {
  int self = 0, other = 0, fresh = 0;
  Hook mine, others, news;
  others = std::move(comm_.pre_hook(counts(other)).value());
  mine = std::move(comm_
                       .pre_hook(
                           [&](const PreHookArgs&) {
                             ++self;
                             EXPECT_EQ(mine.reset(), Detached::deferred);
                             EXPECT_EQ(others.reset(), Detached::deferred);
                             news = std::move(comm_.pre_hook(counts(fresh)).value());
                             return Verdict::allow();
                           },
                           {.priority = 1})
                       .value());
  EXPECT_TRUE(barrier());
  EXPECT_EQ(fresh, 0);  // it is called for the next one
  EXPECT_TRUE(barrier());
  EXPECT_EQ(self, 1);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(fresh, 1);
}

TEST_F(CommunicatorHookLivesTest, RemovingWaitsForACallInAnotherThread) {
  std::atomic<bool> inside{false}, go{false};
  Hook hook = std::move(comm_
                            .post_hook([&](const PostHookArgs&) {
                              inside = true;
                              go.wait(false);
                            })
                            .value());
  std::thread caller([&] { EXPECT_TRUE(barrier()); });
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  EXPECT_EQ(hook.reset_for(nanoseconds(1)), Detached::timeout);
  go = true;
  go.notify_all();
  EXPECT_EQ(hook.reset(), Detached::done);
  caller.join();
}

/// A post hook that is being called, in a thread of its own, until it is let go.
struct Called {
  explicit Called(
      const Communicator& comm, std::function<void()> at_the_end = [] {})
      : handle(comm.register_post_hook([this, at_the_end, held = held](const PostHookArgs&) {
                     inside = true;
                     go.wait(false);
                     at_the_end();
                   })
                   .value()),
        caller([comm] { EXPECT_TRUE(comm.run(Barrier{}, [](const Operation&) {})); }) {
    EXPECT_TRUE(eventually([this] { return inside.load(); }));
  }
  void let_go() {
    go = true;
    go.notify_all();
    caller.join();
  }
  std::shared_ptr<int> held = std::make_shared<int>(0);
  std::atomic<bool> inside{false}, go{false};
  RemovableHandle handle;
  std::thread caller;
};

TEST_F(CommunicatorHookLivesTest, TwoThatRemoveItAtOnceBothWait) {
  RemovableHandle copy;
  Detached within{};
  Called called(comm_, [&] { within = copy.remove(); });
  copy = called.handle;
  Detached first{};
  std::thread remover([&] { first = called.handle.remove(); });
  EXPECT_TRUE(eventually([&] { return !copy.attached(); }));
  EXPECT_EQ(copy.remove_for(nanoseconds(1)), Detached::timeout);
  called.let_go();
  remover.join();
  EXPECT_EQ(first, Detached::done);
  EXPECT_EQ(within, Detached::deferred);
  EXPECT_EQ(copy.remove(), Detached::was_not_attached);
}

TEST_F(CommunicatorHookLivesTest, OneThatWaitsForAnotherThatRemovesItIsToldDone) {
  Called called(comm_);
  std::array<Detached, 2> told{};
  std::array<std::thread, 2> removers;
  for (std::size_t i = 0; i < 2; ++i)
    removers[i] = std::thread([&, i] { told[i] = called.handle.remove(); });
  EXPECT_TRUE(eventually([&] { return !called.handle.attached(); }));
  called.let_go();
  for (auto& one : removers) one.join();
  // The second may come when all is over.
  EXPECT_TRUE(told[0] == Detached::done || told[1] == Detached::done);
  for (const Detached one : told)
    EXPECT_TRUE(one == Detached::done || one == Detached::was_not_attached);
}

TEST_F(CommunicatorHookLivesTest, AfterARemovalThatGaveUpTheLastCallTakesWhatItHolds) {
  Called called(comm_);
  EXPECT_EQ(called.handle.remove_for(nanoseconds(1)), Detached::timeout);
  called.handle = {};
  EXPECT_GT(called.held.use_count(), 1);
  called.let_go();
  EXPECT_TRUE(eventually([&] { return called.held.use_count() == 1; }));
}

TEST_F(CommunicatorHookLivesTest, AfterTheEndOfAPartTheLastCallTakesWhatACompletionHookHolds) {
  const auto held = std::make_shared<int>(0);
  std::atomic<bool> inside{false}, go{false};
  const RemovableHandle handle =
      comm_
          .register_completion_hook([&inside, &go, held](const CompletionHookArgs&) {
            inside = true;
            go.wait(false);
          })
          .value();
  CommunicatorOptions options = world();
  options.name = "half";
  Communicator part = comm_.part(options).value();
  std::uint64_t id = 0;
  EXPECT_TRUE(part.run(Barrier{}, [&](const Operation& one) { id = one.id(); }));
  std::thread other([this, id] { (void)collective::Ledger::of(bus_).value()->completed(id); });
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  part = {};
  EXPECT_EQ(handle.remove(), Detached::done);  // from the whole; the part has no hooks any more
  EXPECT_GT(held.use_count(), 1);
  go = true;
  go.notify_all();
  other.join();
  EXPECT_TRUE(eventually([&] { return held.use_count() == 1; }));
}

TEST_F(CommunicatorHookLivesTest, PartsHaveTheHooksOfTheirParentAndOneRemovalTakesThemFromAll) {
  Heard<Group> groups(bus_);
  int calls = 0, later = 0, ends = 0;
  int removed_before = 0;
  Hook hook = std::move(comm_.pre_hook(counts(calls)).value());
  const auto completion = comm_.completion_hook([&](const CompletionHookArgs&) { ++ends; });
  { const auto gone = comm_.pre_hook(counts(removed_before)); }
  CommunicatorOptions options = world();
  options.name = "half";
  options.rank = 0;
  options.size = 2;
  const Communicator part = comm_.part(options).value();
  const auto after = comm_.pre_hook(counts(later));
  options.name = "quarter";
  const Communicator deeper = part.part(options).value();
  for (const Communicator& one : {comm_, part, deeper})
    EXPECT_TRUE(one.run(Barrier{}, [](const Operation& issued) { (void)issued.completed(); }));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(ends, 3);
  EXPECT_EQ(later, 1);
  EXPECT_EQ(removed_before, 0);
  ASSERT_EQ(groups.all().size(), 2u);
  EXPECT_EQ(groups.all()[0].change, GroupChange::split);
  EXPECT_EQ(groups.all()[0].group.view(), "half");
  EXPECT_EQ(groups.all()[0].parent.view(), "world");
  EXPECT_EQ(groups.all()[0].hooks, 2u);
  EXPECT_EQ(groups.all()[1].parent.view(), "half");
  EXPECT_EQ(hook.reset(), Detached::done);
  for (const Communicator& one : {comm_, part, deeper})
    EXPECT_TRUE(one.run(Barrier{}, [](const Operation&) {}));
  EXPECT_EQ(calls, 3);
}

TEST_F(CommunicatorHookLivesTest, ASplitIsPairedAlsoWhereThisRankGetsNothing) {
  Heard<Group> groups(bus_);
  int before = 0;
  std::vector<const Communicator*> parts;
  const auto pre = comm_.pre_hook(counts(before));
  const auto post = comm_.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.name, OpName::split);
    parts.push_back(args.new_comm);
  });
  {
    auto issuing = comm_.issue(collective::Split{});
    comm_.no_part();
    issuing.returned_part(nullptr);
  }
  CommunicatorOptions options = world();
  options.name = "half";
  auto issuing = comm_.issue(collective::Split{});
  const Communicator part = comm_.part(options).value();
  issuing.returned_part(&part);
  EXPECT_EQ(before, 2);
  EXPECT_EQ(parts, (std::vector<const Communicator*>{nullptr, &part}));
  ASSERT_EQ(groups.all().size(), 2u);
  EXPECT_EQ(groups.all()[0].change, GroupChange::split);
  EXPECT_EQ(groups.all()[0].group, Name());
  EXPECT_EQ(groups.all()[0].parent.view(), "world");
  EXPECT_EQ(groups.all()[0].rank, collective::kNoRank);
}

}  // namespace
}  // namespace ringmain::tests
