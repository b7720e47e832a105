// Is a wrapped call told once at most, whoever comes and goes in its middle, and does it harm
// nobody wherever it is made?
#include <cerrno>
#include <csetjmp>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/adapters/cuda/traced/traced_fixture.hpp"

namespace ringmain::cuda {
namespace {

using TracedMidCallTest = TracedFixture;

TEST_F(TracedMidCallTest, WhileCuptiIsLentWrappedCallsAreTold) {
  auto made = bus.heard<MemoryAllocation>();
  Source source = attached();
  ASSERT_TRUE(source.lend("a profiler").value());
  void* memory = nullptr;
  ASSERT_EQ(straight("cudaMalloc", &memory, std::size_t{64}), 0);
  ASSERT_EQ(traced::cudaMalloc(&memory, 128), traced::cudaSuccess);
  ASSERT_TRUE(source.take_back().value());
  ASSERT_EQ(traced::cudaMalloc(&memory, 256), traced::cudaSuccess);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(made.size(), 2);
  EXPECT_EQ(made[0].bytes, 128);
  EXPECT_EQ(made[1].bytes, 256);
}

TEST_F(TracedMidCallTest, ASourceThatLeavesInMidCallTellsNoEnd) {
  auto synchronized = bus.heard<DeviceSynchronization>();
  Source source = attached();
  during("cudaDeviceSynchronize", [&] { (void)source.detach(); });
  ASSERT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  ASSERT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  bus.deliver();
  ASSERT_EQ(synchronized.size(), 1);
  EXPECT_EQ(synchronized[0].phase, Phase::begin);
}

TEST_F(TracedMidCallTest, ASourceThatComesInMidCallTellsItOnceAtMost) {
  auto made = bus.heard<MemoryAllocation>();
  Source source;
  void* memory = nullptr;
  during("cudaMalloc", [&] { source = attached(); });
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  bus.deliver();
  EXPECT_LE(made.size(), 1) << "the driver's call, as CUPTI told of nothing before";
  for (const auto& event : made) EXPECT_EQ(event.layer, Layer::driver);
  made.clear();
  during("cudaMalloc", [&] {
    (void)source.detach();
    source = attached();
  });
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  ASSERT_EQ(traced::cudaMalloc(&memory, 128), traced::cudaSuccess);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(made.size(), 2);
  EXPECT_EQ(made[0].layer, Layer::driver);
  EXPECT_EQ(made[1].layer, Layer::wrapper);
}

TEST_F(TracedMidCallTest, AnotherSourceTellsNoEndOfWhatItDidNotTellTheBeginOf) {
  auto synchronized = bus.heard<DeviceSynchronization>();
  Source source = attached({.wrapped_only = true});
  during("cudaDeviceSynchronize", [&] {
    (void)source.detach();
    source = attached({.wrapped_only = true});
  });
  ASSERT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  bus.deliver();
  ASSERT_EQ(synchronized.size(), 1);
  EXPECT_EQ(synchronized[0].phase, Phase::begin);
}

TEST_F(TracedMidCallTest, WhoListensComesAndGoesInMidCall) {
  auto made = bus.heard<MemoryAllocation>();
  Source source = attached();
  void* memory = nullptr;
  during("cudaMalloc", [&] {
    { const auto last = std::move(made); }
    tell();
    made = bus.heard<MemoryAllocation>();
    tell();
  });
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  ASSERT_EQ(straight("cudaMalloc", &memory, std::size_t{128}), 0);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(made.size(), 2);
  EXPECT_EQ(made[0].layer, Layer::wrapper);
  EXPECT_EQ(made[1].bytes, 128);
}

TEST_F(TracedMidCallTest, ASubscribersOwnCallsAreNeitherToldNorAskedAbout) {
  int asked = 0;
  void* memory = nullptr;
  auto asks = bus.channel<CallBegin>().subscribe_inline([&](const CallBegin&) {
    ++asked;
    EXPECT_EQ(traced::cudaFree(memory), traced::cudaSuccess);
  });
  auto gone = bus.heard<MemoryDeallocation>();
  Source source = attached();
  ASSERT_EQ(straight("cudaMalloc", &memory, std::size_t{64}), 0);
  ASSERT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(source.counts().suppressed, 1);
  (void)source.detach();
  bus.deliver();
  EXPECT_TRUE(gone.empty());
}

TEST_F(TracedMidCallTest, ErrnoStaysWhatItWas) {
  listen_to_all();
  auto begun = bus.heard<CallBegin>();
  Source source = attached();
  Things of = things;
  for (const EachCall& each : each_call()) {
    errno = 4711;
    ASSERT_EQ(each.make(of, true), 0);
    EXPECT_EQ(errno, 4711) << each.cbid;
  }
  tests::clear_away(of);
}

TEST_F(TracedMidCallTest, AForkedChildCallsCudaAndTellsNothing) {
  auto asks = bus.channel<CallBegin>().subscribe_inline(
      [](const CallBegin&) { return Verdict::veto(Name{}); });
  Source source = attached({.wrapped_only = true});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(traced::cudaDeviceSynchronize() == traced::cudaSuccess ? 7 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_NE(traced::cudaDeviceSynchronize(), traced::cudaSuccess) << "here it is refused";
}

TEST_F(TracedMidCallTest, ABusThatEndsBeforeItsSourceIsNoHarm) {
  auto gone = std::make_unique<TestBus>();
  auto asks = gone->channel<CallBegin>().subscribe_inline([](const CallBegin&) {});
  auto made = Source::attach(*gone, {.wrapped_only = true});
  ASSERT_TRUE(made);
  gone.reset();
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  EXPECT_EQ(made.value().detach(), Detached::done);
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
}

std::jmp_buf out;
traced::cudaError_t jumps() {
  std::longjmp(out, 1);  // NOLINT: what the test is about
}
TEST_F(TracedMidCallTest, ACallThatIsLeftByAJumpMutesNoLaterCallOfTheRuntime) {
  auto made = bus.heard<MemoryAllocation>();
  auto synchronized = bus.heard<DeviceSynchronization>();
  Source source = attached();
  ASSERT_TRUE(traced::replace("cudaDeviceSynchronize", &jumps));
  if (setjmp(out) == 0) (void)traced::cudaDeviceSynchronize();  // NOLINT
  ASSERT_TRUE(traced::restore("cudaDeviceSynchronize"));
  void* memory = nullptr;
  ASSERT_EQ(straight("cudaMalloc", &memory, std::size_t{64}), 0);
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(synchronized.size(), 1);
  ASSERT_EQ(made.size(), 2);
  EXPECT_EQ(made[0].layer, Layer::runtime);
}

traced::cudaError_t throws() {
  throw 4711;
}
TEST_F(TracedMidCallTest, ACallThatIsLeftByAnExceptionMutesNothing) {
  auto made = bus.heard<MemoryAllocation>();
  auto synchronized = bus.heard<DeviceSynchronization>();
  Source source = attached();
  ASSERT_TRUE(traced::replace("cudaDeviceSynchronize", &throws));
  EXPECT_THROW((void)traced::cudaDeviceSynchronize(), int);
  ASSERT_TRUE(traced::restore("cudaDeviceSynchronize"));
  std::uint64_t address = 0;
  ASSERT_EQ(straight("cuMemAlloc_v2", &address, std::size_t{64}), 0);
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(synchronized.size(), 1);
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made[0].layer, Layer::driver);
}

traced::cudaError_t never_ready() {
  return traced::cudaErrorNotReady;
}
TEST_F(TracedMidCallTest, AFunctionIsReplacedAndRestoredWhetherItIsHeardOrNot) {
  EXPECT_FALSE(traced::replace("cudaLaunchKernel", &never_ready));
  for (const bool heard : {false, true}) {
    SCOPED_TRACE(heard);
    auto synchronized = bus.heard<DeviceSynchronization>();
    Source source;
    if (heard) source = attached({.wrapped_only = true});
    ASSERT_TRUE(traced::replace("cudaDeviceSynchronize", &never_ready));
    EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotReady);
    ASSERT_TRUE(traced::restore("cudaDeviceSynchronize"));
    EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
    (void)source.detach();
    bus.deliver();
    EXPECT_EQ(synchronized.size(), heard ? 4 : 0);
  }
}

}  // namespace
}  // namespace ringmain::cuda
