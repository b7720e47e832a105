// Which operations does a recording have as open?
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "events/collective.hpp"
#include "events/recorded_operations.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

using engine::flight::FlightRead;
using engine::flight::TextKind;

class RecordedOperationsTest : public ::testing::Test {
 protected:
  Folder folder_;
};

TEST_F(RecordedOperationsTest, OperationsThatWereIssuedAndHaveNotEndedAreInTheTable) {
  Bus bus(with_workers(1));
  RecordOptions options = in_folder(folder_.path());
  options.operations = collective::recorded_operations();
  auto made = bus.record("collective.>", options);
  ASSERT_TRUE(made.has_value());
  const Recording recording = std::move(made).value();
  const Name op("all_reduce"), group("dp");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    collective::Issued issued;
    issued.op_id = id;
    issued.sequence = 10 * id;
    issued.bytes = 4096;
    issued.op = op;
    issued.group = group;
    EXPECT_EQ(bus.channel<collective::Issued>().publish(issued), PublishCode::accepted);
  }
  collective::Completed completed;
  completed.op_id = 1;
  (void)bus.channel<collective::Completed>().publish(completed);
  collective::Failed failed;
  failed.op_id = 3;
  (void)bus.channel<collective::Failed>().publish(failed);
  const FlightRead file = read_whole(recording);
  ASSERT_EQ(file.operations.size(), 1u);
  EXPECT_EQ(file.operations[0].id, 2u);
  EXPECT_EQ(file.operations[0].sequence, 20u);
  EXPECT_EQ(file.operations[0].bytes, 4096u);
  EXPECT_EQ(file.operations[0].kind, op.id());
  EXPECT_EQ(file.operations[0].group, group.id());
  EXPECT_NE(file.find(TextKind::source, file.operations[0].source), nullptr);
}

// It would be in the table for ever, and a place of it taken.
TEST_F(RecordedOperationsTest, AnOperationThatEndsWhileItIsSaidToBeIssuedIsNotInTheTable) {
  Bus bus(with_workers(1));
  RecordOptions options = in_folder(folder_.path());
  options.operations = collective::recorded_operations();
  const Recording recording = bus.record("collective.>", options).value();
  const auto end = [&bus](const collective::Issued& said) {
    if (said.op_id == 3) return;
    collective::Completed completed;
    completed.op_id = said.op_id;
    (void)bus.channel<collective::Completed>().publish(completed);
  };
  {
    const Subscription inlined = bus.channel<collective::Issued>().subscribe_inline(end);
    collective::Issued issued;
    issued.op_id = 1;
    EXPECT_EQ(bus.channel<collective::Issued>().publish(issued), PublishCode::accepted);
    const Subscription heard =
        bus.channel<collective::Issued>().subscribe([](const collective::Issued&) {});
    for (issued.op_id = 2; issued.op_id <= 3; ++issued.op_id)
      EXPECT_EQ(bus.channel<collective::Issued>().publish(issued), PublishCode::accepted);
  }
  const FlightRead file = read_whole(recording);
  ASSERT_EQ(file.operations.size(), 1u);
  EXPECT_EQ(file.operations[0].id, 3u);
  EXPECT_NE(file.find(TextKind::source, file.operations[0].source), nullptr);
}

}  // namespace
}  // namespace ringmain::tests
