// What if what NCCL tells is nonsense, or never ends?
#include <limits>
#include <memory>
#include <vector>

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

class PluginHostileTest : public PluginFixture {
 protected:
  PluginTable table{7};
};

TEST_F(PluginHostileTest, StampsOfAnyKindGiveNoTimeThatOverflows) {
  auto kernels = bus.heard<KernelChannel>();
  attach();
  Driver nccl(table);
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t stamp :
       {std::uint64_t{1}, kMax, kMax / 2, kMax / 2 + 1, kMax / 2 + 2, kMax - 1}) {
    for (const std::uint64_t end : {stamp, kMax, std::uint64_t{0}, kMax / 2 + 1}) {
      void* const operation = nccl.enqueue(1);
      nccl.kernel_stop(nccl.kernel(operation, 0, stamp), end);
      nccl.kernel_stop(nccl.kernel(operation, 255, stamp), end);
    }
  }
  (void)bus.deliver();
  EXPECT_EQ(kernels.size(), 48);
}

TEST_F(PluginHostileTest, WhatBelongsToNoCommunicatorEndsWithTheLastOne) {
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  attach();
  auto first = std::make_unique<Driver>(table), second = std::make_unique<Driver>(table);
  // Of another process, of no parent, and of a context that is over.
  void* const foreign = first->proxy_op(nullptr, 0, 5, true, ::getpid() + 1);
  EXPECT_NE(foreign, nullptr);
  EXPECT_NE(first->step(foreign, 0), nullptr);
  EXPECT_NE(first->step(nullptr, 1), nullptr);
  void* const context = first->context;
  first->finalize();
  EXPECT_NE(second->start(Driver::descriptor(abi::kProxyCtrl), context), nullptr);
  EXPECT_EQ(counts().started, 4);
  EXPECT_EQ(counts().aborted, 0);
  second->finalize();
  EXPECT_EQ(counts().aborted, 4);
}

using PluginUnloadedTest = PluginFixture;

TEST_F(PluginUnloadedTest, OneThatIsUnloadedInTheMiddleGoesOnWhereItWas) {
  auto groups = bus.heard<Group>();
  attach();
  auto table = std::make_unique<PluginTable>(7);
  int mask = 0;
  void *context = nullptr, *plan = nullptr;
  ASSERT_EQ(table->init(&context, &mask, "dp", 1, 1, 2, 1), abi::kSuccess);
  ASSERT_EQ(table->start(context, &plan, Driver::descriptor(abi::kGroup)), abi::kSuccess);
  table.reset();
  const PluginTable again(6);
  {
    Driver next(again, "tp");
    next.stop(next.plan());
  }
  ASSERT_EQ(again.stop(plan), abi::kSuccess);
  ASSERT_EQ(again.finalize(context), abi::kSuccess);
  bus.deliver();
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[1].group.view(), "dp");
  EXPECT_EQ(groups[1].ending, Ending::stopped);
  EXPECT_EQ(counts().started, counts().stopped);
}

TEST_F(PluginHostileTest, CallsWhoseOperationsNeverComeLeaveRoomForOthers) {
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  attach();
  std::vector<std::unique_ptr<Driver>> many;
  for (int i = 0; i < 80; ++i) many.push_back(std::make_unique<Driver>(table));
  for (const auto& one : many) {
    for (int i = 0; i < 1024; ++i) one->stop(one->coll_api(nullptr, "Broadcast"));
  }
  EXPECT_EQ(counts().no_room, 0);
}

TEST_F(PluginHostileTest, DescriptorsOfNonsenseAreCounted) {
  auto all = bus.subscribe("nccl.*", [](const EventView&) {});
  attach();
  Driver nccl(table);
  std::uint64_t started = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    for (void* const parent :
         {static_cast<void*>(nullptr), reinterpret_cast<void*>(~std::uintptr_t{0}),
          reinterpret_cast<void*>(std::uintptr_t{0x10}), nccl.context}) {
      auto d = Driver::descriptor(abi::kCollApi, parent);
      std::memset(static_cast<void*>(&d.coll), 0, sizeof d.coll);
      d.type = std::uint64_t{1} << bit;
      d.rank = std::numeric_limits<int>::min();
      if (d.type == abi::kProxyStep) d.proxy_step.step = std::numeric_limits<int>::min();
      void* const one = nccl.start(d);
      if (one == nullptr) continue;
      ++started;
      for (const int state :
           {std::numeric_limits<int>::min(), -1, 8, 22, 31, 32, std::numeric_limits<int>::max()})
        nccl.record(one, static_cast<abi::State>(state));
      nccl.stop(one);
      nccl.stop(one);
      nccl.record(one, abi::kKernelChStop);
    }
  }
  EXPECT_EQ(started, 64);
  auto d = Driver::descriptor(abi::kColl);
  d.type = abi::kColl | abi::kP2p;
  EXPECT_EQ(nccl.start(d), nullptr);
  d.type = 0;
  EXPECT_EQ(nccl.start(d), nullptr);
  d.type = ~std::uint64_t{0};
  EXPECT_EQ(nccl.start(d), nullptr);
}

TEST_F(PluginHostileTest, NamesOfAnyKindAreTaken) {
  auto notices = bus.heard<PluginNotice>();
  attach();
  const std::string large(1 << 20, 'x');
  for (const char* const name : {"", "\xff\xfe\x80", "a\nb\"c\\", large.c_str()}) {
    Driver nccl(table, name, std::numeric_limits<int>::min(), -1, std::numeric_limits<int>::max(),
                ~std::uint64_t{0});
    EXPECT_NE(nccl.context, nullptr);
    (void)nccl.enqueue(255);
  }
  Driver unnamed(table, nullptr);
  EXPECT_NE(unnamed.context, nullptr);
}

}  // namespace
}  // namespace ringmain::nccl
