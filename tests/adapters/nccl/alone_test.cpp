// Does a plugin that alone comes behind ringmain's find NCCL as it would without?
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

#include "tests/adapters/nccl/fake_plugin.hpp"
#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/process/child.hpp"

namespace ringmain::nccl {
namespace {

/// In a child, which has a chain of its own.
FakePlugin& alone(const char* file, int wanted) {
  ::setenv("RINGMAIN_NCCL_CHAIN", file, 1);
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  FakePlugin& fake = *reinterpret_cast<decltype(&fake_plugin)>(::dlsym(library, "fake_plugin"))();
  fake.wanted = wanted;
  return fake;
}
const FakeCall* begun(const FakePlugin& fake, std::uint64_t type) {
  const auto found = std::ranges::find_if(fake.calls, [type](const FakeCall& one) {
    return one.what == FakeCall::start && one.type == type;
  });
  return found == fake.calls.end() ? nullptr : &*found;
}

void gives_no_handle() {
  FakePlugin& fake = alone(RINGMAIN_FAKE_V6, abi::kColl);
  const PluginTable table{6};
  Driver nccl(table);
  fake.gives_no_handle = true;
  const Counts before = Source::counts();
  EXPECT_EQ(nccl.coll_api(nullptr), nullptr);
  const Counts after = Source::counts();
  EXPECT_EQ(after.filtered - before.filtered, 1);
  EXPECT_EQ(after.started - before.started, 0);
  fake.gives_no_handle = false;
  EXPECT_NE(nccl.coll_api(nullptr), nullptr);
}

void is_older() {
  const FakePlugin& fake = alone(RINGMAIN_FAKE_V4, abi::kColl);
  const PluginTable table{7};
  Driver nccl(table);
  (void)nccl.enqueue(1);
  const FakeCall* const plan = begun(fake, abi::kGroup);
  const FakeCall* const operation = begun(fake, abi::kColl);
  ASSERT_NE(plan, nullptr);
  ASSERT_NE(operation, nullptr);
  EXPECT_EQ(operation->parent, plan->handle);  // in version 4 the plan is its parent
}

void in_child(void (*test)()) {
  const std::string end = tests::in_child([&](tests::Findings& found) {
    test();
    found.expect(!testing::Test::HasFailure(), "see above");
  });
  EXPECT_EQ(end, tests::kFine);
}

TEST(AloneTest, WhatItGivesNoHandleForIsNotOpen) {
  in_child(gives_no_handle);
}
TEST(AloneTest, OneThatIsOlderIsToldInItsOwnForm) {
  in_child(is_older);
}

}  // namespace
}  // namespace ringmain::nccl
