// What if there is no memory in the middle of NCCL's calls? Each allocation of the thread that
// calls fails once, in turn: the job runs on, what is lost is counted, and nothing stays behind.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/nccl/nccl.hpp"
#include "adapters/sources/nccl/nccl_core.hpp"

#include "tests/adapters/nccl/fake/fake_nccl.hpp"
#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/process/allocation_faults.hpp"
#include "tests/process/child.hpp"

namespace ringmain::nccl {
namespace {

constexpr const char* kNotReached = "exited with 9";

/// Runs `one(k)` in a process of its own for each k, until it says that there is no k-th
/// allocation. How many there are.
template <class One>
long fail_in_turn(One one) {
  for (long k = 1;; ++k) {
    const std::string end = tests::in_child(
        [&](tests::Findings& found) {
          const bool reached = one(k);
          found.expect(!testing::Test::HasFailure(), "see above");
          if (!reached && found.code() == 0) ::_exit(9);
        },
        tests::Leave::by_underscore_exit);
    if (end == kNotReached) {
      testing::Test::RecordProperty("allocations", std::to_string(k - 1));
      return k - 1;
    }
    EXPECT_EQ(end, tests::kFine) << "allocation " << k;
    if (end != tests::kFine) return k;
  }
}
/// `call()` with the k-th allocation of this thread failing. False: it has fewer.
template <class Call>
bool without_memory(long k, Call call) {
  tests::fail_own_allocations(k, 1);
  call();
  return tests::heal_allocations();
}

std::size_t communicators() {
  const Core* const core = switchboard.core.load();
  return core == nullptr ? 0 : core->communicators.opened();
}
void expect_all_is_over(const Counts& now) {
  EXPECT_EQ(now.started, now.stopped + now.stale + now.aborted);
  EXPECT_EQ(communicators(), 0);
}

struct Beginning {
  bool attached, chained;
};
/// The process's first communicator.
bool begin_without_memory(long k, Beginning how) {
  const std::string list = std::string(RINGMAIN_FAKE_V4) + ":" + RINGMAIN_FAKE_V6;
  if (how.chained) ::setenv("RINGMAIN_NCCL_CHAIN", list.c_str(), 1);
  PluginTable table{7};
  TestBus bus;
  auto groups = bus.heard<Group>();
  Source source;
  if (how.attached) source = Source::attach(bus).value();
  const Counts before = Source::counts();
  void* context = kUnwritten;
  int mask = 0;
  const bool reached = without_memory(
      k, [&] { EXPECT_EQ(table.init(&context, &mask, "dp", 1, 2, 8, 3), abi::kSuccess); });
  EXPECT_NE(context, kUnwritten);
  auto what = Driver::descriptor(abi::kGroup);
  void* handle = kUnwritten;
  EXPECT_EQ(table.start(context, &handle, what), abi::kSuccess);
  EXPECT_NE(handle, kUnwritten);
  if (handle != nullptr) {
    EXPECT_EQ(table.stop(handle), abi::kSuccess);
  }
  const Counts now = since(before);
  const std::uint64_t untold_communicators = context == nullptr ? 1 : 0;
  EXPECT_EQ(now.started + now.filtered + now.no_context, 1 + untold_communicators);
  EXPECT_EQ(table.finalize(context), abi::kSuccess);
  EXPECT_EQ(communicators(), 0) << "a place is lost";
  {
    Driver next(table);
    EXPECT_NE(next.context, nullptr);
    EXPECT_EQ(communicators(), 1);
    next.stop(next.plan());
  }
  expect_all_is_over(since(before));
  if (how.attached) {
    EXPECT_GE(since(before).published + since(before).refused, 1);
    EXPECT_EQ(source.detach(), Detached::done);
  }
  return reached;
}

TEST(NcclMemoryTest, EachAllocationOfTheFirstInitMayFail) {
  for (const Beginning how :
       {Beginning{false, false}, Beginning{true, false}, Beginning{true, true}})
    EXPECT_GT(fail_in_turn([&](long k) { return begin_without_memory(k, how); }), 0);
}

/// In a thread of which nothing is known yet.
TEST(NcclMemoryTest, EachAllocationOfAFinalizeMayFail) {
  EXPECT_GT(fail_in_turn([](long k) {
              PluginTable table{7};
              TestBus bus;
              auto groups = bus.heard<Group>();
              auto kernels = bus.heard<KernelChannel>();
              auto source = Source::attach(bus).value();
              const Counts before = Source::counts();
              Driver nccl(table);
              (void)nccl.plan();
              (void)nccl.enqueue(1);
              bool reached = false;
              void* const context = std::exchange(nccl.context, nullptr);
              std::thread([&] {
                reached =
                    without_memory(k, [&] { EXPECT_EQ(table.finalize(context), abi::kSuccess); });
              }).join();
              EXPECT_EQ(communicators(), 0);
              { Driver again(table); }
              expect_all_is_over(since(before));
              return reached;
            }),
            0);
}

/// It is not the last one, whose end looks for all that is left.
TEST(NcclMemoryTest, WhatAFinalizeWithoutMemoryLeavesOpenIsAbortedWhenTheNextOneComes) {
  EXPECT_GT(fail_in_turn([](long k) {
              PluginTable table{7};
              TestBus bus;
              auto groups = bus.heard<Group>();
              auto source = Source::attach(bus).value();
              const Counts before = Source::counts();
              Driver other(table), nccl(table);
              (void)nccl.plan();
              bool reached = false;
              void* const context = std::exchange(nccl.context, nullptr);
              std::thread([&] {
                reached =
                    without_memory(k, [&] { EXPECT_EQ(table.finalize(context), abi::kSuccess); });
              }).join();
              Driver next(table);
              EXPECT_EQ(since(before).aborted, 1) << "it stays open";
              return reached;
            }),
            0);
}

TEST(NcclMemoryTest, EachAllocationOfAThreadsFirstEventsMayFail) {
  EXPECT_GT(fail_in_turn([](long k) {
              PluginTable table{7};
              TestBus bus;
              auto groups = bus.heard<Group>();
              auto source = Source::attach(bus).value();
              const Counts before = Source::counts();
              Driver nccl(table);
              bool reached = false;
              std::thread([&] {
                reached = without_memory(k, [&] {
                  for (int i = 0; i < 3; ++i) nccl.stop(nccl.plan());
                });
              }).join();
              nccl.finalize();
              const Counts now = since(before);
              EXPECT_EQ(now.started + now.no_room, 3);
              EXPECT_EQ(now.published + now.refused, now.started);
              bus.deliver();
              EXPECT_EQ(groups.size(), now.published);
              expect_all_is_over(now);
              return reached;
            }),
            0);
}

TEST(NcclMemoryTest, EachAllocationOfAnAttachMayFail) {
  EXPECT_GT(fail_in_turn([](long k) {
              PluginTable table{7};
              Driver nccl(table);
              TestBus bus;
              auto groups = bus.heard<Group>();
              const bool reached = without_memory(k, [&] {
                try {
                  auto source = Source::attach(bus);
                } catch (const std::bad_alloc&) {
                }
              });
              EXPECT_EQ(nccl.asked(), 0);
              auto source = Source::attach(bus);
              EXPECT_TRUE(source) << source.error().message;
              EXPECT_NE(nccl.asked(), 0);
              nccl.stop(nccl.plan());
              bus.deliver();
              EXPECT_EQ(groups.size(), 1);
              return reached;
            }),
            0);
}

/// A program's calls through the wrapper: of a communicator, of two of its parts, and of a group.
void call_nccl() {
  ncclConfig_t config;
  config.commName = "a name that is longer than what a string has room for by itself";
  ncclUniqueId id{};
  ncclComm_t comm = nullptr, part = nullptr;
  static float data[2];
  const auto all_reduce = [&](ncclComm_t on) {
    EXPECT_EQ(AllReduce(&data[0], &data[1], 1, ncclFloat32, ncclSum, on, nullptr), ncclSuccess);
  };
  EXPECT_EQ(CommInitRankConfig(&comm, 4, id, 1, &config), ncclSuccess);
  all_reduce(comm);
  EXPECT_EQ(GroupStart(), ncclSuccess);
  for (int i = 0; i < 3; ++i) all_reduce(comm);
  EXPECT_EQ(GroupEnd(), ncclSuccess);
  EXPECT_EQ(CommSplit(comm, 2, 1, &part, nullptr), ncclSuccess);
  all_reduce(part);
  ncclResult_t now{};
  EXPECT_EQ(CommGetAsyncError(comm, &now), ncclSuccess);
  EXPECT_EQ(CommFinalize(part), ncclSuccess);
  EXPECT_EQ(CommDestroy(part), ncclSuccess);
  EXPECT_EQ(CommAbort(comm), ncclSuccess);
}

/// Names are the process's for ever, a block each: one that could not be told what it is called
/// has another.
long blocks_beside_names() {
  const long living = tests::allocations_living();  // 0: a sanitizer counts
  return living == 0 ? 0 : living - static_cast<long>(names_stats().names);
}

TEST(NcclMemoryTest, EachAllocationOfTheWrappersCallsMayFail) {
  constexpr const char* kCalls[] = {"ncclCommInitRankConfig", "ncclCommSplit",   "ncclGroupEnd",
                                    "ncclCommFinalize",       "ncclCommDestroy", "ncclCommAbort"};
  EXPECT_GT(fail_in_turn([&](long k) {
              fake_nccl::fake_nccl_reset();
              call_nccl();
              TestBus bus;
              std::uint64_t issued = 0;
              auto heard = bus.channel<collective::Issued>().subscribe(
                  [&](const collective::Issued&) { ++issued; });
              auto calls = Calls::attach(bus).value();
              bool reached = false;
              for (int i = 0; i < 3; ++i) {  // what is made once and kept is there
                std::thread(call_nccl).join();
                bus.deliver();
              }
              try {
                throw std::bad_alloc();
              } catch (const std::bad_alloc&) {
              }
              EXPECT_EQ(issued, 3 * 6);  // with the split
              const long living = blocks_beside_names();
              fake_nccl::fake_nccl_reset();
              std::thread([&] { reached = without_memory(k, call_nccl); }).join();
              for (const char* const name : kCalls) {
                EXPECT_EQ(fake_nccl::fake_nccl_seen(name), 1) << name;
              }
              EXPECT_EQ(fake_nccl::fake_nccl_seen("ncclAllReduce"), 5);
              EXPECT_EQ(fake_nccl::fake_nccl_communicators(), 0);
              EXPECT_EQ(calls.figures().communicators, 0);
              EXPECT_EQ(calls.figures().refused, 0);
              bus.deliver();
              EXPECT_EQ(collective::Ledger::of(bus).value()->figures().open, 0);
              issued = 0;
              std::thread(call_nccl).join();
              bus.deliver();
              EXPECT_EQ(issued, 6);
              const long more = blocks_beside_names() - living;
              EXPECT_EQ(more, 0) << "something leaks";
              EXPECT_EQ(calls.figures().communicators, 0);
              calls.detach();
              return reached;
            }),
            0);
}

}  // namespace
}  // namespace ringmain::nccl
