// Does a plugin among others that do anything to it hear what it hears alone? A process has one
// chain, so each case is a process of its own.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/adapters/nccl/hostile_plugin.hpp"
#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/process/child.hpp"

namespace ringmain::nccl {
namespace {

/// The plugins by their place in the chain.
struct Behind {
  std::vector<const char*> files;
  std::vector<HostilePlugin*> plugins;
};
Behind chain(const std::vector<const char*>& files) {
  Behind made{files, {}};
  std::string list;
  for (const char* const file : files) {
    list += (list.empty() ? "" : ":") + std::string(file);
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    made.plugins.push_back(
        reinterpret_cast<decltype(&hostile_plugin)>(::dlsym(library, "hostile_plugin"))());
    made.plugins.back()->wanted = static_cast<std::uint32_t>(abi::all_types(7));
  }
  ::setenv("RINGMAIN_NCCL_CHAIN", list.c_str(), 1);
  return made;
}

/// Handles that threads take from each other: most are stale when they come back.
using Shared = std::array<std::atomic<void*>, 32>;

/// A stream of anything, as `seed` has it.
void play(const PluginTable& table, const Driver& nccl, Shared& shared, std::uint64_t seed,
          int rounds) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds; ++i) {
    auto& place = shared[random() % shared.size()];
    switch (random() % 8) {
      case 0:
        (void)place.exchange(nccl.plan());
        break;
      case 1:
        nccl.stop(place.load());
        break;
      case 2: {
        void* const operation = nccl.enqueue(2);
        nccl.kernel_stop(nccl.kernel(operation, 0, random()), random());
        break;
      }
      case 3: {
        void* const op = nccl.proxy_op(place.load(), 0);
        nccl.stop(nccl.step(op, static_cast<int>(random() % 4)));
        (void)place.exchange(op);
        break;
      }
      case 4:
        nccl.record(place.load(), abi::kRecvGpuWait);
        break;
      case 5:
        (void)place.exchange(nccl.step(place.load(), 1));
        break;
      case 6:
        (void)nccl.enqueue(4);
        break;
      default: {
        if (random() % 8 != 0) break;
        Driver shortly(table, "shortly");
        (void)shortly.enqueue(2);
        (void)shortly.plan();
      }
    }
  }
}

void expect_all_is_over(const Counts& now) {
  EXPECT_EQ(now.started, now.stopped + now.stale + now.aborted);
}

/// In a child: `body` finds no fault.
void expect_fine(const std::function<void()>& body) {
  const std::string end = tests::in_child([&](tests::Findings& found) {
    body();
    found.expect(!testing::Test::HasFailure(), "see above");
  });
  EXPECT_EQ(end, tests::kFine);
}

/// What the witness notes of a stream, alone or among others. In a file, as it is a child's.
class SameTest : public testing::TestWithParam<std::function<void(HostilePlugin&)>> {
 protected:
  struct Way {
    int version;     // of NCCL: the witness's, or one that is narrowed for it
    bool listeners;  // ringmain's own, so that it is not passed on only
  };
  static std::uint64_t heard(const std::vector<const char*>& files, std::size_t witness, Way way,
                             const std::function<void(HostilePlugin&)>& habit) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    expect_fine([&] {
      const Behind behind = chain(files);
      for (std::size_t i = 0; i < files.size(); ++i) {
        if (i != witness) habit(*behind.plugins[i]);
      }
      HostilePlugin& it = *behind.plugins[witness];
      it.notes = true;
      TestBus bus;
      Subscription all;
      if (way.listeners) all = bus.subscribe("nccl.*", [](const EventView&) {});
      auto source = Source::attach(bus).value();
      PluginTable table{way.version};
      const Counts before = Source::counts();
      {
        Shared shared{};
        Driver nccl(table);
        play(table, nccl, shared, 42, 400);
      }
      expect_all_is_over(since(before));
      EXPECT_EQ(it.faults(), 0);
      const std::uint64_t what[] = {it.noted, it.stops, it.records};
      for (const std::uint64_t one : what) EXPECT_GT(one, 0);
      EXPECT_EQ(::write(ends[1], what, sizeof what), static_cast<ssize_t>(sizeof what));
    });
    std::uint64_t what[3] = {};
    EXPECT_EQ(::close(ends[1]), 0);
    EXPECT_EQ(::read(ends[0], what, sizeof what), static_cast<ssize_t>(sizeof what));
    EXPECT_EQ(::close(ends[0]), 0);
    return what[0];
  }
};

TEST_P(SameTest, AmongOthersItHearsWhatItHearsAlone) {
  const char* const first = RINGMAIN_HOSTILE_6;
  const char* const last = RINGMAIN_HOSTILE_4;
  const char* const it = RINGMAIN_WITNESS;
  for (const Way way : {Way{6, false}, Way{7, false}, Way{6, true}, Way{7, true}}) {
    SCOPED_TRACE(std::to_string(way.version) + (way.listeners ? ", with listeners" : ""));
    const std::uint64_t alone = heard({it}, 0, way, GetParam());
    EXPECT_EQ(heard({first, it, last}, 1, way, GetParam()), alone);
    EXPECT_EQ(heard({last, first, it}, 2, way, GetParam()), alone);
  }
}

INSTANTIATE_TEST_SUITE_P(, SameTest,
                         testing::Values([](HostilePlugin& one) { one.gives_null = true; },
                                         [](HostilePlugin& one) { one.gives_parents = true; },
                                         [](HostilePlugin& one) { one.fails = true; },
                                         [](HostilePlugin& one) { one.scribbles = true; },
                                         [](HostilePlugin& one) { one.closes_itself = true; },
                                         [](HostilePlugin& one) {
                                           one.gives_null = one.fails = one.scribbles =
                                               one.closes_itself = true;
                                         }));

/// One alone, whose descriptor is NCCL's own: what NCCL reads of it afterwards is as it was.
TEST(ChainHostileTest, OneThatWritesAllOverADescriptorLeavesNcclsParents) {
  expect_fine([] {
    const Behind behind = chain({RINGMAIN_HOSTILE_6});
    behind.plugins[0]->scribbles = true;
    PluginTable table{6};
    Driver nccl(table);
    for (const auto type : {abi::kColl, abi::kP2p, abi::kGroup}) {
      abi::DescriptorV6 what;
      convert(what, Driver::descriptor(type), nccl.coll_api(nullptr));
      void* const plan = nccl.plan();
      if (has_plan(type)) plan_of(what) = plan;
      const abi::DescriptorV6 before = what;
      void* handle = nullptr;
      EXPECT_EQ(table.as<abi::TableV6>().start_event(nccl.context, &handle, &what), abi::kSuccess);
      EXPECT_EQ(what.parent, before.parent);
      what.type = type;
      if (has_plan(type)) {
        EXPECT_EQ(plan_of(what), plan);
      }
      nccl.stop(handle);
      nccl.stop(plan);
    }
  });
}

TEST(ChainHostileTest, OneThatIsNamedTwiceIsCalledOnce) {
  expect_fine([] {
    const Behind behind = chain({RINGMAIN_WITNESS, RINGMAIN_WITNESS});
    PluginTable table{7};
    Driver nccl(table);
    nccl.stop(nccl.plan());
    EXPECT_EQ(behind.plugins[0]->inits, 1);
    EXPECT_EQ(behind.plugins[0]->starts[0], 1);
  });
}

/// A graph's call is captured once; each replay begins its operation in a thread of CUDA's.
TEST(ChainHostileTest, AThousandReplaysAreUnderTheCallThatWasCaptured) {
  expect_fine([] {
    const Behind behind = chain({RINGMAIN_WITNESS});
    PluginTable table{7};
    Driver nccl(table);
    const Counts before = Source::counts();
    nccl.captured = true;
    void* const call = nccl.coll_api(nullptr);
    nccl.stop(call);
    nccl.captured = false;
    std::thread cuda([&] {
      for (int i = 0; i < 1000; ++i) {
        void* const plan = nccl.plan();
        void* const operation = nccl.coll(call, plan);
        nccl.stop(operation);
        nccl.stop(plan);
        nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
      }
    });
    for (int i = 0; i < 300; ++i) (void)nccl.enqueue();  // eager ones meanwhile
    cuda.join();
    const HostilePlugin& it = *behind.plugins[0];
    EXPECT_EQ(it.faults(), 0);
    EXPECT_EQ(it.starts[1], 1300);  // operations
    EXPECT_EQ(it.starts[6], 1000);  // kernels
    EXPECT_EQ(it.orphans, 0) << "operations without their call";
    nccl.finalize();
    expect_all_is_over(since(before));
    EXPECT_EQ(it.stops, since(before).stopped);
  });
}

/// Threads stop what others began, listeners and communicators come and go, masks change.
TEST(ChainHostileTest, ManyThreadsAmongHostileOnesLoseNothing) {
  expect_fine([] {
    const Behind behind = chain({RINGMAIN_HOSTILE_6, RINGMAIN_WITNESS, RINGMAIN_HOSTILE_4});
    for (HostilePlugin* const each : {behind.plugins[0], behind.plugins[2]}) {
      HostilePlugin& one = *each;
      one.gives_null = one.fails = one.scribbles = one.closes_itself = true;
      one.takes_its_time = one.changes_mask = true;
    }
    behind.plugins[2]->gives_parents = true;
    Bus bus;
    auto source = Source::attach(bus).value();
    PluginTable table{7};
    const Counts before = Source::counts();
    Shared shared{};
    std::vector<std::unique_ptr<Driver>> drivers;
    for (int i = 0; i < 3; ++i) drivers.push_back(std::make_unique<Driver>(table));
    std::vector<std::thread> threads;
    const std::uint64_t seed = std::random_device{}();
    for (std::uint64_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] { play(table, *drivers[i], shared, seed + i, 2000); });
    for (int looks = 0; looks < 20; ++looks) {
      auto all = bus.subscribe("nccl.*", [](const EventView&) {});
      ASSERT_TRUE(bus.wait_told(nanoseconds(-1)));
      auto ends = bus.channel<collective::Completed>().subscribe([](const auto&) {});
    }
    for (auto& one : threads) one.join();
    for (auto& one : drivers) one->finalize();
    EXPECT_EQ(source.detach(), Detached::done);
    const HostilePlugin& it = *behind.plugins[1];
    EXPECT_EQ(it.faults(), 0) << "seed " << seed << ": handles " << it.strange_handles
                              << ", stopped twice " << it.stopped_twice << ", parents "
                              << it.strange_parents << ", contexts " << it.strange_contexts
                              << ", torn " << it.torn;
    EXPECT_EQ(it.inits, it.finalizes);
    EXPECT_GT(it.stops, 0);
    expect_all_is_over(since(before));
    ASSERT_TRUE(bus.flush(nanoseconds(-1)));
    EXPECT_TRUE(bus.verify_accounting());
  });
}

}  // namespace
}  // namespace ringmain::nccl
