// Is a call that goes through the wrapper told as the source tells the same call by CUPTI, once,
// and is every call of the kinds wrapped?
#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tests/adapters/cuda/traced/traced_fixture.hpp"

namespace ringmain::cuda {
namespace {

/// Not wrapped, and why. What is neither here nor wrapped makes the test below fail.
const std::map<std::uint16_t, const char*> kUnwrapped{
    {123, "cudaThreadExit: of contexts, which are none of the ten kinds; deprecated"},
    {126, "cudaThreadSynchronize: deprecated since CUDA 4.0, and not in CUDA 13's header"},
    {130, "cudaStreamDestroy_v3020: the older form of 201, which no header declares"},
    {164, "cudaDeviceReset: of contexts, which are none of the ten kinds"},
    {271, "cudaEventCreateFromEGLSync: takes EGL's types, in a header of its own"},
    {311, "cudaGraphLaunch: of captures, which are none of the ten kinds"},
    {312, "its form for each thread's own default stream"},
    {315, "cudaStreamBeginCapture: of captures"},
    {316, "its form for each thread's own default stream"},
    {319, "cudaStreamEndCapture: of captures"},
    {320, "its form for each thread's own default stream"},
    {452, "cudaStreamBeginCaptureToGraph: of captures"},
    {453, "its form for each thread's own default stream"},
    {526, "cudaGreenCtxCreate: of contexts"},
    {527, "cudaExecutionCtxDestroy: of contexts"},
    {562, "cudaStreamBeginRecaptureToGraph: of captures"},
    {563, "its form for each thread's own default stream"},
#ifndef WITH_EXECUTION_CONTEXTS
    {533, "not in CUDA 13.0's header"},
    {534, "not in CUDA 13.0's header"},
    {543, "not in CUDA 13.0's header"},
    {544, "not in CUDA 13.0's header"},
#endif
};

/// The runtime's rows that a build of this kind of default stream uses.
std::set<std::uint16_t> rows_of_this_build() {
  std::set<std::uint16_t> rows;
  std::map<std::string_view, bool> per_thread;
  for (const CallRow& row : call_rows()) {
    if (row.domain == CallDomain::runtime) per_thread[row.name] |= row.per_thread_stream;
  }
  for (const CallRow& row : call_rows()) {
    if (row.domain != CallDomain::runtime) continue;
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
    const bool used = row.per_thread_stream == per_thread[row.name];
#else
    const bool used = !row.per_thread_stream;
#endif
    if (used && !kUnwrapped.contains(row.cbid)) rows.insert(row.cbid);
  }
  return rows;
}

using TracedTest = TracedFixture;

/// Addresses by the order in which they come up, as two rounds get different ones.
class Addresses {
 public:
  std::string operator()(const std::string& address) {
    const bool means_something = address.size() < 3 || address == std::to_string(kNoStream);
    if (means_something) return address;
    return "#" + std::to_string(known_.try_emplace(address, known_.size()).first->second);
  }

 private:
  std::map<std::string, std::size_t> known_;
};

/// What must differ, made alike.
Fields comparable(Fields fields, bool wrapped, Addresses& addresses) {
  for (const char* address : {"event", "stream", "address"}) {
    if (fields.contains(address)) fields[address] = addresses(fields[address]);
  }
  EXPECT_EQ(fields["layer"], wrapped ? "\"wrapper\"" : "\"runtime\"") << fields["api"];
  EXPECT_NE(fields["correlation"], "0");
  fields.erase("layer");
  fields.erase("correlation");
  for (const char* relative : {"generation", "duration_ns"}) {
    if (fields.contains(relative)) fields[relative] = fields[relative] == "0" ? "0" : "some";
  }
  // The wrapper does not know the context before a call within tells it.
  if (fields["result"] == "-1") {
    if (wrapped) {
      EXPECT_EQ(fields["context"], "0") << fields["api"];
    }
    fields.erase("context");
  }
  return fields;
}

TEST_F(TracedTest, EachCallIsToldAsTheSourceTellsItAndOnce) {
  listen_to_all();
  const auto straight_calls = all_calls(false);
  const auto wrapped = all_calls(true);
  ASSERT_EQ(wrapped.size(), straight_calls.size());
  std::set<std::uint16_t> seen;
  Addresses of_wrapped, of_straight;
  for (std::size_t i = 0; i < wrapped.size(); ++i) {
    ASSERT_EQ(wrapped[i].channel, straight_calls[i].channel);
    EXPECT_EQ(comparable(wrapped[i].fields, true, of_wrapped),
              comparable(straight_calls[i].fields, false, of_straight));
    seen.insert(static_cast<std::uint16_t>(std::stoi(wrapped[i].fields.at("cbid"))));
  }
  EXPECT_EQ(seen, rows_of_this_build()) << "wrap the call, or say in kUnwrapped why not";
}

TEST_F(TracedTest, WithoutCuptiOnlyWrappedCallsAreTold) {
  listen_to_all();
  const std::uint64_t asked = fake_cupti_asked();
  Source source = attached({.wrapped_only = true});
  EXPECT_EQ(source.state(), SourceState::attached);
  Things of = things;
  for (const EachCall& each : each_call()) ASSERT_EQ(each.make(of, false), 0) << each.cbid;
  tests::clear_away(of);
  EXPECT_TRUE(heard().empty());
  of = things;
  std::size_t told = 0;
  for (const EachCall& each : each_call()) {
    ASSERT_EQ(each.make(of, true), 0) << each.cbid;
    const auto now = heard();
    ASSERT_GE(now.size(), 1) << each.cbid;
    ASSERT_LE(now.size(), 2) << each.cbid;
    for (const Told& event : now) EXPECT_EQ(event.fields.at("device"), "0");
    told += now.size();
  }
  tests::clear_away(of);
  EXPECT_EQ(fake_cupti_asked(), asked);
  EXPECT_EQ(source.counts().published, told);
  EXPECT_FALSE(source.lend("somebody").value()) << "it has nothing to lend";
  EXPECT_EQ(source.detach(), Detached::done);
  of = things;
  for (const EachCall& each : each_call()) ASSERT_EQ(each.make(of, true), 0) << each.cbid;
  tests::clear_away(of);
  EXPECT_TRUE(heard().empty());
}

TEST_F(TracedTest, AFailedCallSaysWhatItWasAskedFor) {
  auto made = bus.heard<MemoryAllocation>();
  Source source = attached();
  fake_cuda_fail("cudaMalloc", 2, 1);
  void* memory = nullptr;
  EXPECT_EQ(traced::cudaMalloc(&memory, 1 << 20), traced::cudaErrorMemoryAllocation);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made[0].phase, Phase::failed);
  EXPECT_EQ(made[0].result, 2);
  EXPECT_EQ(made[0].bytes, 1 << 20);
  EXPECT_EQ(made[0].layer, Layer::wrapper);
}

TEST_F(TracedTest, AReleaseThatFailedIsTakenBack) {
  auto gone = bus.heard<MemoryDeallocation>();
  Source source = attached();
  void* memory = nullptr;
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  fake_cuda_fail("cudaFree", 1, 1);
  EXPECT_EQ(traced::cudaFree(memory), traced::cudaErrorInvalidValue);
  EXPECT_EQ(straight("cudaFree", memory), 0) << "CUPTI's and the wrapper's have one table";
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(gone.size(), 3);
  EXPECT_EQ(gone[1].phase, Phase::failed);
  EXPECT_EQ(gone[1].correlation, gone[0].correlation);
  EXPECT_GT(gone[0].generation, 0);
  EXPECT_EQ(gone[2].generation, gone[0].generation);
  EXPECT_EQ(gone[2].bytes, 64);
  EXPECT_EQ(gone[2].layer, Layer::runtime);
}

TEST_F(TracedTest, FreeingNothingIsNoEventAndIsNotAskedAbout) {
  auto gone = bus.heard<MemoryDeallocation>();
  auto begun = bus.heard<CallBegin>();
  Source source = attached();
  EXPECT_EQ(traced::cudaFree(nullptr), traced::cudaSuccess);
  (void)source.detach();
  bus.deliver();
  EXPECT_TRUE(gone.empty());
  EXPECT_TRUE(begun.empty());
}

TEST_F(TracedTest, OfTheDriversCallsOnlyItIsStillToldOnce) {
  auto made = bus.heard<MemoryAllocation>();
  Source source = attached({.driver_only = true});
  void* memory = nullptr;
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  ASSERT_EQ(straight("cudaMalloc", &memory, std::size_t{64}), 0);
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(made.size(), 2);
  EXPECT_EQ(made[0].layer, Layer::wrapper);
  EXPECT_EQ(made[1].layer, Layer::driver);
}

}  // namespace
}  // namespace ringmain::cuda
