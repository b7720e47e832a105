// Is a group made, found and ended as it should be?
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::CommunicatorOptions;
using collective::Completed;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::How;
using collective::Issued;
using collective::Operation;

class CommunicatorGroupsTest : public OnCommunicator {};

TEST_F(CommunicatorGroupsTest, ItsEndCancelsItsOwnAndRefusesWhatComes) {
  Heard<Failed> failed(bus_);
  Heard<Group> groups(bus_);
  const auto other_rank = [&] {
    CommunicatorOptions options = world();
    options.rank = 2;  // of the same group, in this process
    return Communicator::make(bus_, options).value();
  }();
  Operation elsewhere;
  EXPECT_TRUE(other_rank.run(all_reduced(), [&](const Operation& one) { elsewhere = one; }));
  const Operation open = issue(all_reduced());
  const Communicator copy = comm_;
  comm_.end();
  comm_.end();
  EXPECT_TRUE(copy.ended());
  EXPECT_FALSE(open.completed());
  EXPECT_TRUE(elsewhere.completed());
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].op_id, open.id());
  EXPECT_EQ(failed.all()[0].how, How::cancelled);
  auto issuing = comm_.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(), "its communicator has ended");
  const auto hook = comm_.post_hook([](const collective::PostHookArgs&) {});
  ASSERT_FALSE(hook);
  EXPECT_NE(hook.error().message.find("'world' has ended"), std::string::npos);
  EXPECT_FALSE(comm_.part(world()));
  std::vector<GroupChange> changes;
  for (const Group& one : groups.all()) changes.push_back(one.change);
  EXPECT_EQ(changes, (std::vector{GroupChange::made, GroupChange::ended}));
  EXPECT_EQ(groups.all()[1].operations, 1u);
  EXPECT_EQ(groups.all()[1].rank, 1);
}

TEST_F(CommunicatorGroupsTest, WhatBeginsWhileItEndsIsCancelledAndNotCalled) {
  Heard<Failed> failed(bus_);
  const auto ender = bus_.channel<Issued>().subscribe_inline([&](const Issued&) { comm_.end(); });
  auto issuing = comm_.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(), "its communicator has ended");
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].how, How::cancelled);
  EXPECT_EQ(failed.all()[0].op_id, issuing.operation().id());
}

TEST_F(CommunicatorGroupsTest, AGroupSaysOfWhomItConsists) {
  Heard<Group> groups(bus_);
  constexpr std::array<int, 4> kRanks{0, 4, 8, 12};
  CommunicatorOptions options = world();
  options.name = "tp";
  options.description = "tensor parallel";
  options.ranks = kRanks;
  const auto comm = Communicator::make(bus_, options).value();
  ASSERT_EQ(groups.all().size(), 1u);
  const Group said = groups.all()[0];
  EXPECT_EQ(said.group.view(), "tp");
  EXPECT_EQ(said.description.view(), "tensor parallel");
  EXPECT_EQ(said.backend.view(), "loopback");
  EXPECT_EQ(said.ranks.view(), "0-12/4");
  EXPECT_EQ(said.rank, 1);
  EXPECT_EQ(said.group_size, 4);
  EXPECT_EQ(comm.name().view(), "tp");
  EXPECT_EQ(comm.rank(), 1);
  EXPECT_EQ(comm.size(), 4);
}

TEST_F(CommunicatorGroupsTest, OneIsFoundByItsGroupAndRankUntilItEnds) {
  CommunicatorOptions second = world();
  second.rank = 3;
  Communicator found_when_made;
  const auto heard = bus_.channel<Group>().subscribe_inline([&](const Group& said) {
    if (said.change == GroupChange::made)
      found_when_made = Communicator::find(bus_, said.group.view(), said.rank);
  });
  auto other = Communicator::make(bus_, second).value();
  EXPECT_EQ(found_when_made, other);
  EXPECT_EQ(Communicator::find(bus_, "world"), comm_);
  EXPECT_EQ(Communicator::find(bus_, "world", 3), other);
  EXPECT_FALSE(Communicator::find(bus_, "world", 2));
  EXPECT_FALSE(Communicator::find(bus_, "elsewhere"));
  Bus another;
  EXPECT_FALSE(Communicator::find(another, "world"));
  other.end();
  EXPECT_FALSE(Communicator::find(bus_, "world", 3));
}

TEST_F(CommunicatorGroupsTest, OneThatWasGivenUpIsFoundOnlyUntilItHasASuccessor) {
  CommunicatorOptions options = world();
  options.name = "again";
  options.abort = [](Name) {};
  const auto first = Communicator::make(bus_, options).value();
  (void)first.abort("it hangs");
  ASSERT_TRUE(first.aborted());
  EXPECT_EQ(Communicator::find(bus_, "again"), first);
  const auto second = Communicator::make(bus_, options).value();
  EXPECT_EQ(Communicator::find(bus_, "again"), second);
}

TEST_F(CommunicatorGroupsTest, LifecycleOperationsAreOverWhenTheirCallIs) {
  Heard<Issued> issued(bus_);
  Heard<Completed> completed(bus_);
  (void)issue(collective::NewWindow{});
  (void)issue(collective::Split{});
  (void)issue(collective::Finalize{});  // is said as the group's end
  ASSERT_EQ(issued.all().size(), 2u);
  ASSERT_EQ(completed.all().size(), 2u);
  EXPECT_EQ(completed.all()[1].op.view(), "split");
}

TEST_F(CommunicatorGroupsTest, WhatCannotBeACommunicatorIsRefusedInOneSentence) {
  const auto refusal = [&](auto change) {
    CommunicatorOptions options = world();
    change(options);
    const auto made = Communicator::make(bus_, options);
    return made ? std::string("it was made") : made.error().message;
  };
  EXPECT_EQ(refusal([](auto& o) { o.name = ""; }),
            "a communicator needs the name of its group; set CommunicatorOptions::name");
  EXPECT_EQ(refusal([](auto& o) { o.size = 0; }),
            "communicator 'world': size is 0; a group has at least one rank");
  EXPECT_EQ(refusal([](auto& o) { o.rank = 4; }),
            "communicator 'world': rank is 4, and must be from 0 to 3");
  EXPECT_EQ(refusal([](auto& o) { o.rank = -1; }),
            "communicator 'world': rank is -1, and must be from 0 to 3");
  static constexpr std::array<int, 2> kTwo{0, 1};
  EXPECT_EQ(refusal([](auto& o) { o.ranks = kTwo; }),
            "communicator 'world': 2 ranks are given of a group of 4; give all of them, or none");
}

TEST_F(CommunicatorGroupsTest, InAForkedChildItIsInert) {
  Heard<Issued> issued(bus_);
  const auto hook = comm_.pre_hook(
      [](const collective::PreHookArgs&) { return Verdict::veto(Name("parent's")); });
  const pid_t child = ::fork();
  if (child == 0) {
    bool called = false;
    const bool went_on = comm_.run(all_reduced(), [&](const Operation&) { called = true; });
    const bool refused = !comm_.post_hook([](const collective::PostHookArgs&) {});
    const bool nothing_found = !Communicator::find(bus_, "world");
    comm_.end();
    (void)comm_.abort("child");
    comm_ = {};
    std::_Exit(went_on && called && refused && nothing_found ? 0 : 1);
  }
  int how = 0;
  EXPECT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_FALSE(comm_.run(all_reduced(), [](const Operation&) {}));
}

TEST(CommunicatorsTest, ItOutlivesItsBus) {
  Communicator comm;
  collective::Hook hook;
  {
    Bus bus;
    comm = Communicator::make(bus, world()).value();
    hook = std::move(
        comm.pre_hook([](const collective::PreHookArgs&) { return Verdict::veto(Name("x")); })
            .value());
  }
  EXPECT_TRUE(comm.run(all_reduced(), [](const Operation&) {}));
  EXPECT_EQ(hook.reset(), Detached::done);
  const auto late = comm.post_hook([](const collective::PostHookArgs&) {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Error::Code::refused);
}

}  // namespace
}  // namespace ringmain::tests
