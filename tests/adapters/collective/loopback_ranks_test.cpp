// Sends, batches, parts, windows, and hooks that call for operations themselves.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/collective/loopback_operations.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::CompletionHookArgs;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::How;
using collective::Issued;
using collective::PostHookArgs;
using collective::PreHookArgs;
using loopback::OneToOne;
using loopback::Rank;
using loopback::State;
using loopback::Values;
using loopback::Window;
using loopback::Work;
using loopback::World;

class LoopbackRanksTest : public testing::Test {
 protected:
  World world(int ranks) { return World::make(bus_, {.ranks = ranks}).value(); }
  Bus bus_;
};

TEST_F(LoopbackRanksTest, SendsOfAPairAreReceivedInTheirOrder) {
  const World both = world(2);
  both.run([](Rank& rank) {
    std::vector<int> data(5);
    std::vector<Work> works;
    for (int i = 0; i < 5; ++i) {
      data[static_cast<std::size_t>(i)] = rank.rank() == 0 ? 10 + i : 0;
      std::span<int> one(&data[static_cast<std::size_t>(i)], 1);
      const Values value(one);
      works.push_back(rank.rank() == 0
                          ? rank.send({.tensor = value, .peer = 1, .async_op = true})
                          : rank.recv({{.tensor = value, .peer = 0, .async_op = true}}));
    }
    for (const Work& work : works) expect_completed(work);
    EXPECT_EQ(data, (std::vector{10, 11, 12, 13, 14}));
  });
}

TEST_F(LoopbackRanksTest, TheLongestTimeIsForEver) {
  const World world = World::make(bus_, {.ranks = 2, .timeout = nanoseconds::max()}).value();
  world.run([](Rank& rank) {
    const Work work = rank.barrier({.async_op = true});
    EXPECT_EQ(work.wait_for(nanoseconds::max()), State::completed);
  });
}

TEST_F(LoopbackRanksTest, AHookMayLetTheRankGoThatItIsCalledFor) {
  Rank rank = world(1).rank(0);
  bool called = false;
  {
    const auto handle = rank.comm().register_pre_hook([&](const collective::PreHookArgs&) {
      rank = Rank();
      called = true;
      return Verdict::allow();
    });
    EXPECT_TRUE(handle);
  }
  EXPECT_EQ(rank.barrier().state(), State::completed);
  EXPECT_TRUE(called);
}

TEST_F(LoopbackRanksTest, ASendAndItsReceiveFailTogether) {
  const World both = world(2);
  both.run([](Rank& rank) {
    std::vector<int> data(rank.rank() == 0 ? 4 : 3);
    const Values values(data);
    const Work work = rank.rank() == 0 ? rank.send({.tensor = values, .peer = 1})
                                       : rank.recv({{.tensor = values, .peer = 0}});
    EXPECT_EQ(work.reason(),
              "send from rank 0 to rank 1 of group 'world': the sender gives 4 elements, and the "
              "receiver takes 3");
    EXPECT_EQ(rank.send({.tensor = values, .peer = 2}).reason(),
              "send of group 'world': rank " + std::to_string(rank.rank()) +
                  ": peer is 2, and the group has ranks 0 to 1");
  });
}

TEST_F(LoopbackRanksTest, LongDoublesMoveAndAreNotReducedAsIntegers) {
  const World both = world(2);
  both.run([](Rank& rank) {
    std::vector<long double> data{rank.rank() + 0.5L, -1.0L};
    const Values values(data);
    expect_completed(rank.broadcast({.tensor = values, .root = 1}));
    EXPECT_EQ(data, (std::vector{1.5L, -1.0L}));
    const Work sum = rank.all_reduce({.tensor = values});
    EXPECT_EQ(sum.wait(), State::failed);
    EXPECT_NE(sum.reason().find("sum of long double: only the bytes"), std::string::npos)
        << sum.reason();
  });
}

TEST_F(LoopbackRanksTest, IfAPartOfABatchFailsTheRestIsNotLeftOpen) {
  const World all = world(3);
  std::atomic<bool> failed{false};
  all.run([&](Rank& rank) {
    int data[2]{};
    std::span<int> first(&data[0], 1), second(&data[1], 1);
    const Values one(first), another(second);
    if (rank.rank() == 0) {
      rank.set_timeout(std::chrono::milliseconds(20));
      const OneToOne parts[] = {collective::Recv{{.tensor = one, .peer = 1}},
                                collective::Recv{{.tensor = another, .peer = 2}}};
      EXPECT_EQ(rank.batch_op_issue(parts).how(), How::timed_out);
      failed = true;
    } else {
      EXPECT_TRUE(eventually([&] { return failed.load(); }));
      EXPECT_EQ(rank.send({.tensor = one, .peer = 0}).how(), How::timed_out);
    }
  });
}

TEST_F(LoopbackRanksTest, AnEmptyBatchIsDone) {
  const World both = world(2);
  expect_completed(both.rank(0).batch_op_issue({}));
  expect_completed(both.rank(0).batch_op_issue({}, true));
}

TEST_F(LoopbackRanksTest, PartsOfASplitWorkByThemselvesAndHaveTheHooksOfTheWhole) {
  Heard<Group> groups(bus_);
  const World all = world(5);
  std::atomic<int> pre{0}, posts_with_part{0}, posts_without{0};
  all.run([&](Rank& rank) {
    const auto hook = rank.comm().pre_hook([&](const PreHookArgs& args) {
      if (args.communicator->name() == Name("even")) ++pre;
      return Verdict::allow();
    });
    const auto post = rank.comm().post_hook([&](const PostHookArgs& args) {
      if (args.name != collective::OpName::split) return;
      ++(args.new_comm != nullptr ? posts_with_part : posts_without);
    });
    // The others' order is not that of the whole; rank 3 is in none.
    const int even[] = {4, 0, 2}, alone[] = {1};
    const int me = rank.rank();
    const auto part = me == 3   ? rank.split({})
                      : me == 1 ? rank.split({.ranks = alone, .name = "alone"})
                                : rank.split({.ranks = even, .name = "even"});
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_EQ(static_cast<bool>(part.value()), me != 3);
    if (me == 3) return;
    const Rank& mine = part.value();
    EXPECT_EQ(mine.rank(), me == 4 || me == 1 ? 0 : me == 0 ? 1 : 2);
    EXPECT_EQ(mine.size(), me == 1 ? 1 : 3);
    check_all_gather(mine, 3, false);
    check_all_reduce(mine, 3, true);
  });
  EXPECT_EQ(pre, 3 * 2);
  EXPECT_EQ(posts_with_part, 4);
  EXPECT_EQ(posts_without, 1);
  int of_even = 0, of_none = 0;
  for (const Group& one : groups.all()) {
    if (one.change != GroupChange::split) continue;
    EXPECT_EQ(one.parent, Name("world"));
    if (one.group == Name()) ++of_none;
    if (one.group != Name("even")) continue;
    ++of_even;
    EXPECT_EQ(one.ranks.view(), "4,0,2");
    EXPECT_EQ(one.hooks, 2);
  }
  EXPECT_EQ(of_even, 3);
  EXPECT_EQ(of_none, 1);
}

TEST_F(LoopbackRanksTest, APartAboutWhichItsRanksDifferIsNotMade) {
  const World all = world(3);
  all.run([](Rank& rank) {
    const auto reason = [&](std::vector<int> ranks, std::string_view name) {
      const auto part = rank.split({.ranks = ranks, .name = name});
      EXPECT_FALSE(part);
      return part ? std::string() : part.error().message;
    };
    const int me = rank.rank();
    EXPECT_EQ(reason(me == 0 ? std::vector{0, 1} : std::vector{1, 2}, "half"),
              "split of group 'world': rank 0 is to be in part 'half' with rank 1, which names "
              "other ranks or another name");
    EXPECT_NE(reason({0, 1, 2}, me == 2 ? "everybody" : "all").find("another name"),
              std::string::npos);
    EXPECT_NE(reason({0, 1, 2, 2}, "all").find("rank 0 names rank 2 twice in its part"),
              std::string::npos);
    EXPECT_NE(reason({me == 0 ? 3 : me}, "mine").find("rank 0: a member is 3, and the group has"),
              std::string::npos);
    EXPECT_NE(reason({(me + 1) % 3}, "mine").find("the ranks do not hold this one"),
              std::string::npos);
    expect_completed(rank.barrier());
  });
}

TEST_F(LoopbackRanksTest, WhatIsPutIsThereAfterItsSignal) {
  Heard<Issued> issued(bus_);
  const World all = world(3);
  all.run([](Rank& rank) {
    std::vector<int> memory(6, -1);
    const Values exposed(memory);
    const auto made = rank.new_window(exposed);
    ASSERT_TRUE(made) << made.error().message;
    const Window& window = made.value();
    std::vector<int> two{rank.rank(), 10 + rank.rank()};
    const Values mine(two);
    for (int peer = 0; peer < 3; ++peer) {
      expect_completed(window.put(mine, peer, static_cast<std::uint64_t>(2 * rank.rank())));
      expect_completed(window.signal(peer));
    }
    for (int peer = 0; peer < 3; ++peer) expect_completed(window.wait_signal(peer));
    EXPECT_EQ(memory, (std::vector{0, 10, 1, 11, 2, 12}));

    EXPECT_EQ(window.put(mine, 1, 5).reason(),
              "put of group 'world': 2 elements from 5 on do not fit into the 6 of rank 1");
    EXPECT_EQ(window.put(mine, 1, ~std::uint64_t{0}).wait(), State::failed);
    EXPECT_EQ(window.put(mine, 3).reason(),
              "put of group 'world': peer is 3, and the group has ranks 0 to 2");
    std::vector<float> floats(2);
    EXPECT_NE(window.put(Values(floats), 0).reason().find("of 'float32', and the window of"),
              std::string::npos);
    rank.set_timeout(std::chrono::milliseconds(20));
    EXPECT_EQ(window.wait_signal(0).how(), How::timed_out);
    rank.set_timeout(nanoseconds(0));
    expect_completed(rank.barrier());  // all have put
    if (rank.rank() == 0) window.close();
    expect_completed(rank.barrier());
    EXPECT_EQ(window.put(mine, 0).reason(), "put of group 'world': rank 0 has closed its window");
    expect_completed(rank.barrier());
  });
  std::size_t puts = 0;
  for (const Issued& one : issued.all()) puts += one.op == Name("put") ? 1u : 0u;
  EXPECT_EQ(puts, 3 * (3 + 5));
}

TEST_F(LoopbackRanksTest, AWaitForASignalEndsWithTheGroup) {
  const World both = world(2);
  both.run([](Rank& rank) {
    int memory = 0;
    std::span<int> one(&memory, 1);
    const Values value(one);
    const auto window = rank.new_window(value);
    ASSERT_TRUE(window);
    if (rank.rank() == 0) {
      (void)rank.comm().abort("over");
    } else {
      EXPECT_EQ(window.value().wait_signal(0).how(), How::aborted);
    }
  });
}

TEST_F(LoopbackRanksTest, InTheThreadThatSaysEndsNothingWaits) {
  const World both = world(2);
  std::atomic<int> hooks{0};
  both.run([&](Rank& rank) {
    std::vector<Work> later(1);
    const auto hook = rank.comm().completion_hook([&](const CompletionHookArgs& args) {
      if (args.completed == nullptr || args.completed->op != Name("all_reduce")) return;
      EXPECT_NE(rank.barrier().reason().find("called in the thread that says the ends"),
                std::string::npos);
      later[0] = rank.barrier({.async_op = true});
      EXPECT_EQ(later[0].wait(), State::under_way);
      ++hooks;
    });
    ASSERT_TRUE(hook);
    check_all_reduce(rank, 3, true);
    EXPECT_TRUE(eventually([&] { return hooks == 2; }));
    expect_completed(later[0]);
  });
}

}  // namespace
}  // namespace ringmain::tests
