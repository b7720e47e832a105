// Question: what does a program pay for calling NCCL through the wrapper: while nothing is
// attached, while nobody listens, and while its operations are heard from issue to end?
#include <cstdint>

#include "bus/test_bus.hpp"

#include "events/collective.hpp"

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/nccl/nccl.hpp"

#include "bench/repetition.hpp"
#include "bench/time_each.hpp"
#include "bench/two_enqueues.hpp"

namespace ringmain::bench {
namespace {

using collective::Completed;
using collective::Issued;

constexpr int kStretch = 2048;  // operations, of two events each

[[gnu::noinline]] nccl::ncclResult_t reduce_nothing(const void*, void*, std::size_t,
                                                    nccl::ncclDataType_t, nccl::ncclRedOp_t,
                                                    nccl::ncclComm_t, nccl::cudaStream_t) {
  asm volatile("");
  return nccl::ncclSuccess;
}
std::uint64_t current = 0;
/// As a plugin that will say the end.
[[gnu::noinline]] nccl::ncclResult_t reduce_seen(const void*, void*, std::size_t,
                                                 nccl::ncclDataType_t, nccl::ncclRedOp_t,
                                                 nccl::ncclComm_t, nccl::cudaStream_t) {
  current = collective::current_operation();
  (void)collective::promise_end();
  return nccl::ncclSuccess;
}
nccl::ncclResult_t say_two(nccl::ncclComm_t, int* value) {
  *value = 2;
  return nccl::ncclSuccess;
}
nccl::ncclResult_t say_none(nccl::ncclComm_t, int* value) {
  *value = 0;
  return nccl::ncclSuccess;
}

template <class F>
void put(nccl::Functions& functions, nccl::Function which, F* function) {
  functions.at[static_cast<unsigned>(which)] = reinterpret_cast<nccl::AnyFunction*>(function);
}
void use(decltype(reduce_nothing)* reduce) {
  nccl::Functions functions;
  put(functions, nccl::Function::AllReduce, reduce);
  put(functions, nccl::Function::CommCount, &say_two);
  put(functions, nccl::Function::CommUserRank, &say_none);
  put(functions, nccl::Function::CommCuDevice, &say_none);
  nccl::use_functions(functions);
}
/// A handle that NCCL would have given; the wrapper asks what it is.
nccl::ncclComm_t comm() {
  static char place;
  return reinterpret_cast<nccl::ncclComm_t>(&place);
}
nccl::ncclResult_t all_reduce() {
  static float data;
  return nccl::AllReduce(&data, &data, 1024, nccl::ncclFloat32, nccl::ncclSum, comm(), nullptr);
}

void straight(Repetition& repetition) {
  auto* function = &reduce_nothing;
  static float data;
  repetition.value(time_each([&] {
    benchmark::DoNotOptimize(function);
    (void)function(&data, &data, 1024, nccl::ncclFloat32, nccl::ncclSum, comm(), nullptr);
  }));
}
void unattached(Repetition& repetition) {
  use(&reduce_nothing);
  repetition.value(time_each([] { (void)all_reduce(); }));
}
void unheard(Repetition& repetition) {
  use(&reduce_nothing);
  TestBus bus;
  auto calls = nccl::Calls::attach(bus);
  if (!calls) return repetition.fail(calls.error().message.c_str());
  (void)all_reduce();
  repetition.value(time_each([] { (void)all_reduce(); }));
}
void heard(Repetition& repetition) {
  use(&reduce_seen);
  TestBus bus;
  std::uint64_t issued = 0, completed = 0;
  const auto begins = bus.channel<Issued>().subscribe([&](const Issued&) { ++issued; });
  const auto ends = bus.channel<Completed>().subscribe([&](const Completed&) { ++completed; });
  const auto ledger = collective::Ledger::of(bus).value();
  auto calls = nccl::Calls::attach(bus);
  if (!calls) return repetition.fail(calls.error().message.c_str());
  std::uint64_t lost = 0;
  repetition.value(time_stretches<kStretch>(
      [&] {
        (void)all_reduce();
        lost += ledger->completed(current) ? 0u : 1u;
      },
      [&] { (void)bus.deliver(); }));
  if (lost != 0 || issued != completed || issued != std::uint64_t{40} * kStretch)
    repetition.fail("operations were lost");
}

[[maybe_unused]] const bool kAdded[] = {
    add("nccl_wrapper", "cycle", {}, [](Repetition& r) { r.value(cycle_ns()); }),
    add("nccl_wrapper", "straight", {}, straight),
    add("nccl_wrapper", "unattached", {}, unattached),
    add("nccl_wrapper", "unheard", {}, unheard),
    add("nccl_wrapper", "heard", {}, heard),
    add("nccl_wrapper", "bare_enqueues", {}, two_enqueues<kStretch>),
};

}  // namespace
}  // namespace ringmain::bench
