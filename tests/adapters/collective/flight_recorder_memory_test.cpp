// What does a recorder hold after an operation that it had no memory for?
#include <array>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_signal.hpp"

#include "tests/adapters/collective/on_signal.hpp"
#include "tests/process/allocation_faults.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::FlightRecorderHook;
using collective::detail::OnSignal;

flight::Dump read(const std::string& bytes) {
  flight::Kept kept;
  const auto document = flight::read_document(bytes);
  return flight::read_dump(document.value(), kept).value();
}

/// One operation lacks memory at its k-th allocation, and the next one hangs: what is said of the
/// first one's end must not be said of the second.
TEST(FlightRecorderMemoryTest, AnOperationThatWasLostLeavesNoOtherItsEnd) {
  std::array<float, 4> sent{}, received{};
  const std::int64_t sizes[] = {4};
  const collective::Tensor out{sent.data(), sizes, Name("float32"), sizeof sent};
  const collective::Tensor in{received.data(), sizes, Name("float32"), sizeof received};
  const collective::BatchPart parts[] = {{out, 1, true}, {in, 1, false}};
  int lost = 0;
  for (long k = 1; k < 200; ++k) {
    Bus bus;
    const Communicator comm =
        Communicator::make(bus, {.name = "dp", .backend = "own", .rank = 0, .size = 2}).value();
    FlightRecorderHook recorder({.max_entries = 10, .isolated = true});
    ASSERT_TRUE(recorder.register_with_comm(comm));
    fail_own_allocations(k, 1);
    auto first = comm.issue(collective::BatchOpIssue{.parts = parts});
    const bool failed = heal_allocations();
    const auto first_operation = first.operation();
    first.returned();
    auto second = comm.issue(collective::AllReduce{.tensor = out});
    const auto second_operation = second.operation();
    second.returned();
    (void)first_operation.completed();
    const flight::Dump dump = read(recorder.dump_json());
    ASSERT_FALSE(dump.entries.empty()) << k;
    EXPECT_FALSE(dump.entries.back().retired) << k;
    // Whole or not there: where issue() itself had no memory, the recorder never heard of it.
    EXPECT_EQ(dump.entries.size(), failed && dump.entries.size() == 1 ? 1u : 4u) << k;
    if (recorder.lost() != 0) {
      EXPECT_EQ(dump.entries.size(), 1u) << k;
    }
    for (std::size_t i = 0; i + 1 < dump.entries.size(); ++i)
      EXPECT_TRUE(dump.entries[i].retired) << k;
    lost += recorder.lost() != 0 ? 1 : 0;
    if (!failed) break;
  }
  EXPECT_GT(lost, 1);
}

TEST(OnSignalMemoryTest, WhereThereIsNoMemoryForItNoHandlerIsLeft) {
  int refused = 0;
  for (long k = 1; k < 100; ++k) {
    bool threw = false;
    fail_own_allocations(k, 1);
    try {
      const OnSignal on(SIGUSR2, [] {});
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    const bool failed = heal_allocations();
    EXPECT_EQ(threw, failed) << k;
    EXPECT_EQ(current(SIGUSR2).sa_handler, SIG_DFL) << k;
    refused += threw ? 1 : 0;
    if (!failed) break;
  }
  EXPECT_GT(refused, 2);
}

}  // namespace
}  // namespace ringmain::tests
