// Does each operation give each rank what it must, and is it said once on each?
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/collective/loopback_operations.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Issued;
using collective::Ledger;
using collective::Started;
using loopback::Rank;
using loopback::World;

constexpr std::uint64_t kSizes[] = {0, 1, 2, 3, 7, 1000};

void expect_results(const NamedCheck& one, int ranks, bool async_op) {
  SCOPED_TRACE(std::to_string(ranks) + (async_op ? " ranks, asynchronous" : " ranks"));
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Started> started(bus);
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  const World world = World::make(bus, {.ranks = ranks}).value();
  world.run([&](Rank& rank) {
    for (const std::uint64_t n : kSizes) one.check(rank, n, async_op);
  });
  EXPECT_TRUE(failed.all().empty());
  std::map<std::uint64_t, int> ends;
  for (const auto& end : completed.all()) ++ends[end.op_id];
  std::map<int, std::size_t> of_rank;
  for (const auto& begin : issued.all()) {
    EXPECT_EQ(ends[begin.op_id], 1);
    EXPECT_EQ(begin.source, Name("loopback"));
    EXPECT_EQ(begin.asynchronous, async_op);
    ++of_rank[begin.rank];
  }
  EXPECT_EQ(ends.size(), issued.all().size());
  EXPECT_EQ(started.all().size(), issued.all().size());
  EXPECT_EQ(Ledger::of(bus).value()->figures().late, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(of_rank[rank], std::size(kSizes) * static_cast<std::size_t>(one.operations));
  }
}

class LoopbackResultsTest : public testing::TestWithParam<NamedCheck> {};

TEST_P(LoopbackResultsTest, EachRankGetsWhatItMustAndItIsSaidOnce) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const bool async_op : {false, true}) expect_results(GetParam(), ranks, async_op);
  }
}
INSTANTIATE_TEST_SUITE_P(All, LoopbackResultsTest, testing::ValuesIn(kChecks),
                         [](const auto& of) { return std::string(of.param.name); });

class LoopbackMebiTest : public testing::TestWithParam<int> {};

TEST_P(LoopbackMebiTest, AMebiOfElementsIsNoOtherMatter) {
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20u;
  Bus bus;
  const World world = World::make(bus, {.ranks = GetParam()}).value();
  world.run([](Rank& rank) {
    check_all_reduce(rank, kMebi, false);
    check_broadcast(rank, kMebi, true);
    const auto ranks = static_cast<std::uint64_t>(rank.size());
    check_all_gather_single(rank, kMebi / ranks, false);
    check_reduce_scatter_single(rank, kMebi / ranks, true);
    check_all_to_all_single(rank, kMebi / ranks, false);
    check_batch(rank, kMebi / ranks, true);
  });
}
INSTANTIATE_TEST_SUITE_P(All, LoopbackMebiTest, testing::Values(2, 3, 8));

TEST(LoopbackTest, ARankByItselfIsAGroup) {
  Bus bus;
  const World world = World::make(bus, {.ranks = 1}).value();
  world.run([](Rank& rank) {
    check_all_reduce(rank, 7, false);
    check_all_to_all(rank, 7, true);
    check_batch(rank, 7, false);
  });
}

TEST(LoopbackTest, OfUnknownTypesTheBytesMove) {
  struct Complex {
    float re, im;
    bool operator==(const Complex&) const = default;
  };
  Bus bus;
  const World world = World::make(bus, {.ranks = 2}).value();
  world.run([](Rank& rank) {
    const auto value = static_cast<float>(rank.rank());
    Complex mine{1 + value, 2 + value}, all[2]{};
    const std::int64_t two[] = {2};
    const collective::Tensor one{.data = &mine, .dtype = Name("complex64"), .bytes = 8};
    const collective::Tensor both{
        .data = all, .sizes = two, .dtype = Name("complex64"), .bytes = 16};
    expect_completed(rank.all_gather_single({.input = one, .output = both}));
    EXPECT_EQ(all[0], (Complex{1, 2}));
    EXPECT_EQ(all[1], (Complex{2, 3}));
    const auto reduced = rank.all_reduce({.tensor = one});
    EXPECT_NE(reduced.reason().find("sum of complex64: only the bytes"), std::string::npos)
        << reduced.reason();
  });
}

}  // namespace
}  // namespace ringmain::tests
