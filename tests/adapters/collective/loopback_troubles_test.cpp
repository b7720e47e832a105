// What becomes of ranks that come late, never, or wrong, and of those that wait for them?
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/collective/loopback_operations.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Failed;
using collective::How;
using collective::PreHookArgs;
using collective::ReduceOp;
using loopback::Rank;
using loopback::State;
using loopback::Values;
using loopback::Work;
using loopback::World;

constexpr std::chrono::milliseconds kShort{20};

/// A reason that names this rank, and perhaps one that a busy machine kept from coming in time.
bool names_who_is_late(std::string_view reason, int rank) {
  return reason.starts_with("barrier of group 'world': rank") &&
         reason.ends_with(" not come within 20 ms") &&
         reason.find(std::to_string(rank)) < reason.find(" ha");
}

class LoopbackTroublesTest : public testing::Test {
 protected:
  /// Every rank's call fails so, with that in its sentence.
  template <class Call>
  void expect_all_fail(int ranks, How how, const std::string& sentence, const Call& call) {
    const World world = World::make(bus_, {.ranks = ranks}).value();
    world.run([&](Rank& rank) {
      const Work work = call(rank);
      EXPECT_EQ(work.wait(), State::failed);
      EXPECT_EQ(work.how(), how);
      EXPECT_NE(work.reason().find(sentence), std::string::npos) << work.reason();
      expect_completed(rank.barrier());  // they are in step all the same
    });
  }
  Bus bus_;
  Heard<Failed> failed_{bus_};
};

TEST_F(LoopbackTroublesTest, OneThatNeverComesIsATimeOutForThoseThatWait) {
  const World world = World::make(bus_, {.ranks = 3, .timeout = kShort}).value();
  world.run([](Rank& rank) {
    if (rank.rank() == 1) return;
    const Work work = rank.barrier();
    EXPECT_EQ(work.how(), How::timed_out);
    EXPECT_TRUE(names_who_is_late(work.reason(), 1)) << work.reason();
  });
  const auto failed = failed_.all();
  ASSERT_EQ(failed.size(), 2);
  for (const Failed& one : failed) EXPECT_EQ(one.how, How::timed_out);
}

TEST_F(LoopbackTroublesTest, OneThatComesTooLateFailsAsTheOthersAndIsInStepAgain) {
  const World world = World::make(bus_, {.ranks = 3}).value();
  std::atomic<int> given_up{0};
  world.run([&](Rank& rank) {
    if (rank.rank() == 2) {
      EXPECT_TRUE(eventually([&] { return given_up == 2; }));
    } else {
      rank.set_timeout(kShort);
    }
    const Work work = rank.barrier();
    EXPECT_EQ(work.how(), How::timed_out);
    EXPECT_TRUE(names_who_is_late(work.reason(), 2)) << work.reason();
    ++given_up;
    rank.set_timeout(nanoseconds(0));
    check_all_reduce(rank, 7, false);
  });
}

TEST_F(LoopbackTroublesTest, AnAsynchronousOneRunsOutOfTimeWhileNobodyWaits) {
  const World world = World::make(bus_, {.ranks = 2, .timeout = kShort}).value();
  const Work work = world.rank(0).barrier({.async_op = true});
  EXPECT_TRUE(eventually([&] { return work.done(); }));
  EXPECT_EQ(work.how(), How::timed_out);
}

TEST_F(LoopbackTroublesTest, GivingUpWaitingIsNotGivingUpTheOperation) {
  const World world = World::make(bus_, {.ranks = 2}).value();
  const Work work = world.rank(0).barrier({.async_op = true});
  EXPECT_EQ(work.wait_for(kShort), State::under_way);
  expect_completed(world.rank(1).barrier());
  expect_completed(work);
}

TEST_F(LoopbackTroublesTest, DifferentOperationsAreOneSentenceForAll) {
  expect_all_fail(2, How::error,
                  "group 'world': ranks call for different operations: rank 0 for barrier, rank 1 "
                  "for all_reduce",
                  [](Rank& rank) {
                    std::vector<float> data(4);
                    const Values values(data);
                    return rank.rank() == 0 ? rank.barrier() : rank.all_reduce({.tensor = values});
                  });
}

TEST_F(LoopbackTroublesTest, SoAreDifferentRootsReductionsTypesAndSizes) {
  expect_all_fail(3, How::error, "ranks call for different roots: rank 0 for 0, rank 1 for 1",
                  [](Rank& rank) {
                    std::vector<float> data(4);
                    const Values values(data);
                    return rank.broadcast({.tensor = values, .root = rank.rank()});
                  });
  expect_all_fail(2, How::error,
                  "ranks call for different reductions: rank 0 for sum, rank 1 for max",
                  [](Rank& rank) {
                    std::vector<float> data(4);
                    const Values values(data);
                    return rank.all_reduce(
                        {.tensor = values, .op = rank.rank() == 0 ? ReduceOp::sum : ReduceOp::max});
                  });
  expect_all_fail(2, How::error,
                  "ranks call for different types: rank 0 for float32, rank 1 for int32",
                  [](Rank& rank) {
                    std::vector<float> floats(4);
                    std::vector<std::int32_t> whole(4);
                    const Values as_floats(floats), as_whole(whole);
                    const collective::Tensor mine = rank.rank() == 0 ? as_floats : as_whole;
                    return rank.all_reduce({.tensor = mine});
                  });
  expect_all_fail(3, How::error,
                  "all_reduce of group 'world': rank 0 gives 4 elements, and rank 2 gives 5",
                  [](Rank& rank) {
                    std::vector<float> data(rank.rank() == 2 ? 5 : 4);
                    const Values values(data);
                    return rank.all_reduce({.tensor = values});
                  });
  expect_all_fail(2, How::error, "rank 0 gives 4 elements, and rank 1 takes 3", [](Rank& rank) {
    std::vector<float> data(rank.rank() == 1 ? 3 : 4);
    const Values values(data);
    return rank.broadcast({.tensor = values, .root = 0});
  });
  expect_all_fail(2, How::error, "rank 0 gives 4 elements, and rank 1 gives 3; all pieces",
                  [](Rank& rank) {
                    std::vector<std::int64_t> mine(rank.rank() == 1 ? 3 : 4);
                    auto sizes = empty_pieces(2, 4);
                    sizes[1].resize(3);
                    const Lists out(std::move(sizes));
                    const Values values(mine);
                    return rank.all_gather({.input = values, .output = out.tensors()});
                  });
}

TEST_F(LoopbackTroublesTest, BytesOfUnknownTypesMustBeAsManyOnAllRanks) {
  const std::string sentence =
      "ranks call for different types: rank 0 for complex of 16 bytes, rank 1 for complex of 8";
  expect_all_fail(2, How::error, sentence, [](Rank& rank) {
    std::vector<std::int64_t> data(4);
    const std::int64_t two[] = {2};
    const std::uint64_t bytes = rank.rank() == 0 ? 32 : 16;
    return rank.broadcast(
        {.tensor = {.data = data.data(), .sizes = two, .dtype = Name("complex"), .bytes = bytes},
         .root = 0});
  });
}

TEST_F(LoopbackTroublesTest, ArgumentsThatCannotBeFailTheOthersToo) {
  const auto with = [this](const std::string& sentence, const auto& call) {
    expect_all_fail(2, How::error, sentence, [&](Rank& rank) {
      return rank.rank() == 1 ? call(rank) : rank.barrier({.async_op = true});
    });
  };
  std::vector<float> data(3);
  const Values three(data);
  with("rank 1: root is 2, and the group has ranks 0 to 1",
       [&](Rank& rank) { return rank.broadcast({.tensor = three, .root = 2}); });
  with("rank 1: output has 3 elements, which 2 ranks cannot share; give a multiple",
       [&](Rank& rank) { return rank.all_gather_single({.input = three, .output = three}); });
  with("rank 1: 0 tensors of output for 2 ranks; give one for each",
       [&](Rank& rank) { return rank.all_gather({.input = three}); });
  with("rank 1: reduction 99 is not known here", [&](Rank& rank) {
    return rank.all_reduce({.tensor = three, .op = static_cast<ReduceOp>(99)});
  });
  with("rank 1: avg of int64 is no whole number", [&](Rank& rank) {
    std::vector<std::int64_t> whole(3);
    const Values values(whole);
    return rank.all_reduce({.tensor = values, .op = ReduceOp::avg});
  });
  with("rank 1: a tensor of 3 elements has no data", [&](Rank& rank) {
    collective::Tensor tensor = three;
    tensor.data = nullptr;
    return rank.broadcast({.tensor = tensor, .root = 0});
  });
  with("rank 1: 3 elements of 'float32' are not 13 bytes", [&](Rank& rank) {
    collective::Tensor tensor = three;
    tensor.bytes = 13;
    return rank.all_reduce({.tensor = tensor, .async_op = true});
  });
  with("rank 1: a tensor's sizes are none", [&](Rank& rank) {
    const std::int64_t sizes[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    return rank.all_reduce({.tensor = {.data = data.data(), .sizes = sizes}});
  });
  with("rank 1: input has 3 rows, and its split sizes do not share them among 2 ranks",
       [&](Rank& rank) {
         const std::uint64_t split[] = {~std::uint64_t{0}, 4};  // their sum is 3 only by overflow
         return rank.all_to_all_v_single({.input = three,
                                          .output = three,
                                          .input_split_sizes = split,
                                          .output_split_sizes = split});
       });
}

TEST_F(LoopbackTroublesTest, AVetoLeavesTheOthersWaitingUntilATimeOutWhichSaysSo) {
  const World world = World::make(bus_, {.ranks = 2}).value();
  std::atomic<bool> vetoed{false};
  world.run([&](Rank& rank) {
    if (rank.rank() == 0) {
      const auto hook =
          rank.comm().pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("not today")); });
      ASSERT_TRUE(hook);
      const Work work = rank.barrier();
      EXPECT_EQ(work.how(), How::vetoed);
      EXPECT_EQ(work.reason(), "barrier of group 'world': not today");
      vetoed = true;
    } else {
      EXPECT_TRUE(eventually([&] { return vetoed.load(); }));
      rank.set_timeout(kShort);
      const Work work = rank.barrier();
      EXPECT_EQ(work.how(), How::timed_out);
      EXPECT_EQ(work.reason(),
                "barrier of group 'world': not all ranks have come within 20 ms; a hook of rank 0 "
                "has refused it: not today");
      rank.set_timeout(nanoseconds(0));
    }
    check_all_reduce(rank, 3, false);  // the number of what was refused is used up
  });
}

TEST_F(LoopbackTroublesTest, WhatAllRefuseKeepsThemInStep) {
  const World world = World::make(bus_, {.ranks = 4}).value();
  world.run([](Rank& rank) {
    {
      const auto hook =
          rank.comm().pre_hook([](const PreHookArgs&) { return Verdict::veto(Name("no")); });
      EXPECT_FALSE(rank.barrier());
    }
    check_all_to_all(rank, 3, true);
  });
}

TEST_F(LoopbackTroublesTest, AnAbortWakesAllRanksAndRefusesWhatComes) {
  const World world = World::make(bus_, {.ranks = 4}).value();
  std::atomic<int> waiting{0};
  world.run([&](Rank& rank) {
    std::vector<float> data(7);
    const Values values(data);
    if (rank.rank() == 3) {
      EXPECT_TRUE(eventually([&] { return waiting == 3; }));
      (void)rank.comm().abort("enough");
      EXPECT_EQ(rank.barrier().how(), How::aborted);
      return;
    }
    const Work first = rank.all_reduce({.tensor = values, .async_op = true});
    const Work second = rank.recv({{.tensor = values, .peer = 3, .async_op = true}});
    ++waiting;
    const Work third = rank.barrier();
    for (const Work& work : {first, second, third}) {
      EXPECT_EQ(work.wait(), State::failed);
      EXPECT_EQ(work.how(), How::aborted);
      EXPECT_EQ(work.reason(), "group 'world' was given up: enough");
    }
    EXPECT_EQ(rank.barrier().how(), How::aborted);
  });
  for (const Failed& one : failed_.all()) EXPECT_EQ(one.how, How::aborted);
}

TEST_F(LoopbackTroublesTest, ARankThatLeavesFailsWhatNeedsItAndNothingElse) {
  World world = World::make(bus_, {.ranks = 3}).value();
  world.run([](Rank& rank) {
    if (rank.rank() == 1) {
      EXPECT_TRUE(rank.finalize());
      EXPECT_TRUE(rank.finalize());
      EXPECT_EQ(rank.barrier().how(), How::cancelled);
      return;
    }
    EXPECT_EQ(rank.barrier().reason(), "rank 1 has left group 'world'");
    int mine = rank.rank(), others = -1;
    std::span<int> one(&mine, 1), another(&others, 1);
    const Values given(one), taken(another);
    EXPECT_EQ(rank.send({.tensor = given, .peer = 1}).reason(), "rank 1 has left group 'world'");
    const int peer = 2 - rank.rank();
    const loopback::OneToOne both[] = {collective::Send{.tensor = given, .peer = peer},
                                       collective::Recv{{.tensor = taken, .peer = peer}}};
    expect_completed(rank.batch_op_issue(both));
    EXPECT_EQ(others, peer);
  });
}

TEST_F(LoopbackTroublesTest, OneWhoseLastCopyGoesLeaves) {
  auto world = std::make_unique<World>(World::make(bus_, {.ranks = 2}).value());
  const Rank stays = world->rank(0);
  const Work open = stays.barrier({.async_op = true});
  world.reset();
  EXPECT_EQ(open.wait(), State::failed);
  EXPECT_EQ(open.reason(), "rank 1 has left group 'world'");
}

TEST_F(LoopbackTroublesTest, WhatARankThrowsIsThrownAndTheOthersAreWoken) {
  const World world = World::make(bus_, {.ranks = 3}).value();
  std::atomic<int> aborted{0};
  EXPECT_THROW(world.run([&](Rank& rank) {
    if (rank.rank() == 1) throw std::logic_error("a bug");
    const Work work = rank.barrier();
    EXPECT_EQ(work.how(), How::aborted);
    EXPECT_EQ(work.reason(), "group 'world' was given up: rank 1 has thrown: a bug");
    ++aborted;
  }),
               std::logic_error);
  EXPECT_EQ(aborted, 2);
}

TEST_F(LoopbackTroublesTest, OptionsThatCannotBeAreRefused) {
  EXPECT_FALSE(World::make(bus_, {.ranks = 0}));
  EXPECT_FALSE(World::make(bus_, {.name = ""}));
  const World world = World::make(bus_).value();
  EXPECT_EQ(world.size(), 2);
  const Rank none = world.rank(2);
  EXPECT_FALSE(none);
  EXPECT_FALSE(world.rank(-1));
  EXPECT_EQ(none.barrier().wait(), State::failed);
  EXPECT_FALSE(none.split({}));
  EXPECT_FALSE(none.new_window({}));
  EXPECT_EQ(Work().wait(), State::failed);
}

}  // namespace
}  // namespace ringmain::tests
