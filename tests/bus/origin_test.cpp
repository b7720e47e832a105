// Does an origin name exactly one process, and an op_id exactly one operation?
#include "bus/origin.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain {
namespace {

TEST(OriginTest, ItIsTheSameWheneverAProcessAsks) {
  const std::string id = Origin::here().id;
  EXPECT_EQ(id.size(), 16u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos) << id;
  std::vector<std::string> ids(8);
  std::vector<std::thread> askers;
  for (std::string& one : ids) askers.emplace_back([&one] { one = Origin::here().id; });
  for (std::thread& asker : askers) asker.join();
  for (const std::string& one : ids) EXPECT_EQ(one, id);
}

TEST(OriginTest, AForkedChildHasAnotherOne) {
  const std::string id = Origin::here().id;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Origin own = Origin::here();
    const bool fine = own.process.pid == ::getpid() && own.id == Origin::here().id &&
                      ::write(ends[1], own.id.data(), 16) == 16;
    ::_exit(fine ? 0 : 1);
  }
  std::string other(16, '?');
  EXPECT_EQ(::read(ends[0], other.data(), 16), 16);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(other, id);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(OriginTest, ItsTwoClocksAreOneMoment) {
  const auto real_minus_monotonic = [] {
    Origin now = Origin::here();
    now.read_clocks();
    return now.realtime_ns - now.monotonic_ns;
  };
  const Origin first = Origin::here();
  EXPECT_GT(first.monotonic_ns, 0);
  EXPECT_GT(first.realtime_ns, first.monotonic_ns);
  // The difference stays while the clocks go on: the best of some looks, since a look can be
  // interrupted.
  std::int64_t apart_ns = INT64_MAX;
  for (int looks = 0; looks < 50; ++looks) {
    apart_ns = std::min(apart_ns, std::abs(real_minus_monotonic() - real_minus_monotonic()));
  }
  EXPECT_LT(apart_ns, 1'000'000);
}

TEST(OpIdTest, NoNumberIsGivenTwiceInAProcess) {
  constexpr std::size_t kEach = 70'000;  // more than a thread takes at a time
  std::vector<std::vector<std::uint64_t>> taken(4);
  std::vector<std::thread> takers;
  for (auto& own : taken) {
    takers.emplace_back([&own] {
      for (std::size_t n = 0; n < kEach; ++n) own.push_back(new_op_id());
    });
  }
  const std::uint64_t first = new_op_ids(1000);
  for (std::thread& taker : takers) taker.join();
  std::set<std::uint64_t> all;
  for (std::uint64_t n = 0; n < 1000; ++n) all.insert(first + n);
  for (const auto& own : taken) {
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(all.size(), 4 * kEach + 1000);
  EXPECT_EQ(all.count(0), 0u);
}

}  // namespace
}  // namespace ringmain
