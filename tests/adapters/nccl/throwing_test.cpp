// A plugin behind ringmain's that throws into NCCL: does the job go on, with all the others?
//
// Who has thrown is out of the process's chain for good, so each case is a process of its own.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/adapters/nccl/fake_plugin.hpp"
#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/process/child.hpp"

namespace ringmain::nccl {
namespace {

FakePlugin& fake_of(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<decltype(&fake_plugin)>(::dlsym(library, "fake_plugin"))();
}

std::size_t calls_of(const FakePlugin& fake, FakeCall::What what) {
  return static_cast<std::size_t>(
      std::ranges::count_if(fake.calls, [what](const FakeCall& one) { return one.what == what; }));
}

/// A collective with all that either of them asks for.
void whole_operation(const Driver& nccl) {
  void* const operation = nccl.enqueue(1);
  nccl.kernel_stop(nccl.kernel(operation, 0, 10), 20);
  void* const op = nccl.proxy_op(operation, 0);
  void* const step = nccl.step(op, 0);
  nccl.record(step, abi::kSendWait);
  nccl.stop(step);
  nccl.stop(op);
}

/// In a child: the first of two throws in one of its functions.
void one_throws(FakeCall::What in, bool no_exception) {
  const std::string list = std::string(RINGMAIN_FAKE_V4) + ":" + RINGMAIN_FAKE_V6;
  ::setenv("RINGMAIN_NCCL_CHAIN", list.c_str(), 1);
  FakePlugin& bad = fake_of(RINGMAIN_FAKE_V4);
  FakePlugin& good = fake_of(RINGMAIN_FAKE_V6);
  bad.wanted = abi::kColl | abi::kKernelCh;
  good.wanted = abi::kProxyStep;
  bad.throws_in = in;
  bad.throws_what_is_no_exception = no_exception;

  PluginTable table{7};
  TestBus bus;
  auto notices = bus.heard<PluginNotice>();
  auto operations = bus.heard<Operation>();
  auto source = Source::attach(bus).value();
  {
    Driver nccl(table);
    whole_operation(nccl);
    whole_operation(nccl);
  }
  const std::size_t told = bad.calls.size();
  EXPECT_EQ(calls_of(bad, in), 1) << "it is called again";
  {
    Driver nccl(table);
    EXPECT_EQ(nccl.asked() & abi::kKernelCh, 0) << "what it asked for is still asked of NCCL";
    EXPECT_NE(nccl.asked() & abi::kProxyStep, 0);
    whole_operation(nccl);
  }
  EXPECT_EQ(bad.calls.size(), told);
  EXPECT_EQ(calls_of(good, FakeCall::init), 2);
  EXPECT_EQ(calls_of(good, FakeCall::finalize), 2);
  EXPECT_GT(calls_of(good, FakeCall::start), 3 * 4);
  EXPECT_EQ(calls_of(good, FakeCall::start), calls_of(good, FakeCall::stop));

  (void)bus.deliver();
  EXPECT_EQ(operations.size(), 3);
  const char* const what =
      no_exception ? "threw: what is no std::exception" : "threw: its disk is full";
  const auto named = std::ranges::count_if(notices, [what](const PluginNotice& notice) {
    const std::string_view said = notice.reason.view();
    return notice.state == PluginState::limited &&
           said.find(RINGMAIN_FAKE_V4) != std::string_view::npos &&
           said.find(what) != std::string_view::npos;
  });
  EXPECT_EQ(named, 1);
  EXPECT_EQ(
      std::ranges::count_if(
          notices, [](const PluginNotice& notice) { return notice.state == PluginState::limited; }),
      1);
}

class ThrowingTest : public testing::TestWithParam<FakeCall::What> {};

TEST_P(ThrowingTest, OneThatThrowsIsNamedAndCalledNoMoreAndHarmsNoOther) {
  for (const bool no_exception : {false, true}) {
    const std::string end = tests::in_child([&](tests::Findings& found) {
      one_throws(GetParam(), no_exception);
      found.expect(!HasFailure(), "see above");
    });
    EXPECT_EQ(end, tests::kFine);
  }
}
INSTANTIATE_TEST_SUITE_P(, ThrowingTest,
                         testing::Values(FakeCall::init, FakeCall::start, FakeCall::stop,
                                         FakeCall::record, FakeCall::finalize));

}  // namespace
}  // namespace ringmain::nccl
