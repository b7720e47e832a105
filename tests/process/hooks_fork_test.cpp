// What becomes of a hook row in the child of a fork()? It says `forked`, asks nobody, and destroys
// nothing; a row of a new bus works.
#include <atomic>
#include <optional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/publish/missed.hpp"

#include "bus/bus.hpp"
#include "bus/hooks.hpp"

#include "tests/bus/events.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

TEST(HooksForkTest, ARowOfHooksAsksNobodyInTheChildAndTakesNone) {
  Bus bus(with_workers(2));
  std::atomic<int> living{0};
  int asked = 0;
  std::optional<Hooks<Tick>> row = Hooks<Tick>::make(bus, "test.row").value();
  Subscription seen = row->add([&, c = Counted(living)](const Tick&) { ++asked; });
  row->add([&, c = Counted(living)](const Tick&) { ++asked; }).release();
  ASSERT_TRUE(row->call({1}));
  EXPECT_EQ(in_child([&](Findings& f) {
              f.expect(!row->any(), "any");
              f.expect(row->call({2}) == PublishCode::forked, "call");
              std::thread([&] {
                f.expect(row->call({3}) == PublishCode::forked, "from a new thread");
              }).join();
              const auto late = Hooks<Tick>::make(bus, "test.row");
              f.expect(!late && late.error().code == Error::Code::refused &&
                           late.error().message.find("forked") != std::string::npos,
                       "make");
              const Subscription none = row->add([c = Counted(living)](const Tick&) {});
              f.expect(!none.attached() && living == 2, "add");
              f.expect(seen.reset() == Detached::was_not_attached, "reset");
              row.reset();
              f.expect(asked == 2, "somebody was asked");
              f.expect(living == 2, "captures were destroyed that the parent still uses");
              Bus own(with_workers(1));
              auto new_row = Hooks<Tick>::make(own, "test.row").value();
              const Subscription hook = new_row.add([&](const Tick&) { ++asked; });
              f.expect(new_row.call({4}) == PublishCode::accepted && asked == 3, "a new row");
            }),
            kFine);
  EXPECT_EQ(row->call({5}), PublishCode::accepted);
  EXPECT_EQ(asked, 4);
  row.reset();
  EXPECT_EQ(living, 1);
  EXPECT_EQ(seen.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST(HooksForkTest, ARowInWhichOneForkedEndsInTheChild) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's malloc keeps its locks across fork()";
  Bus bus(with_workers(1));
  auto* const later = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pid_t child = -1;
  auto row = Hooks<Tick>::make(bus, "test.row").value();
  const Subscription forks = row.add([&](const Tick&) { child = ::fork(); });
  const Subscription last = row.add([&](const Tick&) { ++*later; });
  const PublishResult result = row.call({1});
  if (child == 0) ::_exit(result == PublishCode::forked ? 0 : 1);
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(result, PublishCode::accepted);
  EXPECT_EQ(*later, 1);
  ::munmap(later, 4096);
}

TEST(HooksForkTest, WhatAChildDoesNotAskIsNoLossOfTheProcessBus) {
  engine::begin_counting_missed();
  auto row = Hooks<Tick>::make(Bus::process(), "test.row").value();
  const Subscription hook = row.add([](const Tick&) {});
  EXPECT_EQ(in_child([&](Findings& f) {
              f.expect(!row.any(), "any");
              f.expect(row.call({1}) == PublishCode::forked, "call");
              f.expect(engine::missed() == 0, "counted");
            }),
            kFine);
}

}  // namespace
}  // namespace ringmain::tests
