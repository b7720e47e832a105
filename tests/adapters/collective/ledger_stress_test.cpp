// Does every operation that was issued end once, with several reporters of each and groups that
// end?
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/collective_ledger.hpp"

#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Issued;
using collective::Ledger;

enum : int { kIssuers = 2, kReporters = 2, kEach = 20'000, kAtOnce = 64 };

/// Ids that are under way, for reporters to pick from.
using Board = std::array<std::atomic<std::uint64_t>, kAtOnce>;

TEST(LedgerStressTest, EachOperationEndsOnce) {
  Bus bus;
  const auto ledger = Ledger::of(bus).value();
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  Board board{};
  std::atomic<int> issuers{kIssuers};
  std::atomic<std::uint64_t> said_done{0}, cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kIssuers; ++t) {
    threads.emplace_back([&, t] {
      Issued what;
      what.op = Name("all_reduce");
      what.group = Name(t == 0 ? "even" : "odd");
      for (int i = 0; i < kEach; ++i) {
        const std::uint64_t id = ledger->issue(what);
        const Ledger::Inside marked(*ledger, id);
        board[static_cast<std::size_t>(i) % kAtOnce] = ledger->mark();
        // Whoever is slower changes nothing.
        if (i % 3 == 0) (void)ledger->started(id);
        if (i % 2 == 0 && ledger->completed(id)) ++said_done;
      }
      --issuers;
    });
  }
  for (int t = 0; t < kReporters; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; issuers != 0; ++i) {
        const std::uint64_t id = board[(i * 7) % kAtOnce];
        if (ledger->completed(id)) ++said_done;
        if (t == 0 && i % 1024 == 0) cancelled += ledger->end_group(Name("odd"), Name("ended"));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const char* group : {"even", "odd"})
    cancelled += ledger->end_group(Name(group), Name("ended"));

  std::set<std::uint64_t> open;
  for (const Issued& one : issued.all()) EXPECT_TRUE(open.insert(one.op_id).second);
  EXPECT_EQ(open.size(), std::size_t{kIssuers} * kEach);
  std::uint64_t unknown = 0;
  for (const Completed& one : completed.all()) EXPECT_EQ(open.erase(one.op_id), 1u);
  for (const Failed& one : failed.all()) {
    EXPECT_EQ(open.erase(one.op_id), 1u);
    unknown += one.how == collective::How::unknown ? 1u : 0u;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(completed.all().size(), said_done);
  EXPECT_EQ(failed.all().size(), cancelled + unknown);
  EXPECT_EQ(ledger->figures().unknown, unknown);
  EXPECT_EQ(ledger->figures().open, 0u);
}

}  // namespace
}  // namespace ringmain::tests
