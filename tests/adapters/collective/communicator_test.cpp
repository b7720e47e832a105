// Is each operation that a backend reports published as it should be, and each group?
#include "adapters/sources/collective/communicator.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Barrier;
using collective::Communicator;
using collective::CommunicatorOptions;
using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Ledger;
using collective::Operation;
using collective::Shapes;
using collective::Started;
using collective::Tensor;
using collective::Wait;

class CommunicatorTest : public OnCommunicator {};

TEST_F(CommunicatorTest, AnOperationIsIssuedStartedAndCompletedUnderOneId) {
  Heard<Issued> issued(bus_);
  Heard<Started> started(bus_);
  Heard<Completed> completed(bus_);
  const Operation operation = issue(all_reduced());
  EXPECT_TRUE(operation.started());
  EXPECT_TRUE(operation.completed());
  EXPECT_FALSE(operation.completed());
  EXPECT_FALSE(operation.failed("late"));
  ASSERT_EQ(issued.all().size(), 1u);
  ASSERT_EQ(started.all().size(), 1u);
  ASSERT_EQ(completed.all().size(), 1u);
  const Issued said = issued.all()[0];
  EXPECT_EQ(said.op_id, operation.id());
  EXPECT_EQ(said.op.view(), "all_reduce");
  EXPECT_EQ(said.group.view(), "world");
  EXPECT_EQ(said.backend.view(), "loopback");
  EXPECT_EQ(said.source.view(), "test");
  EXPECT_EQ(said.dtype.view(), "float32");
  EXPECT_EQ(said.bytes, 16u);
  EXPECT_EQ(said.in_elements, 4u);
  EXPECT_EQ(said.out_elements, 4u);
  EXPECT_EQ(said.sequence, 1u);
  EXPECT_EQ(said.rank, 1);
  EXPECT_EQ(said.group_size, 4);
  EXPECT_TRUE(said.asynchronous);
  EXPECT_EQ(started.all()[0].op_id, operation.id());
  EXPECT_EQ(completed.all()[0].op_id, operation.id());
  EXPECT_EQ(completed.all()[0].sequence, 1u);
}

TEST_F(CommunicatorTest, CollectivesAreCountedAndNothingElse) {
  Heard<Issued> issued(bus_);
  (void)issue(Barrier{});
  (void)issue(collective::Send{four_floats(), 3});
  (void)issue(collective::Recv{{four_floats(), 3}});
  (void)issue(collective::BatchOpIssue{2, true});
  (void)issue(collective::NewWindow{});
  (void)issue(all_reduced());
  std::vector<std::uint64_t> sequences;
  for (const Issued& one : issued.all()) sequences.push_back(one.sequence);
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 0, 0, 0, 0, 2}));
  EXPECT_EQ(issued.all()[1].peer, 3);
  EXPECT_EQ(issued.all()[1].in_elements, 4u);
  EXPECT_EQ(issued.all()[1].out_elements, 0u);
  EXPECT_EQ(issued.all()[2].out_elements, 4u);
}

TEST_F(CommunicatorTest, SendsReceivesAndBatchesHaveACountOfTheirOwn) {
  (void)issue(collective::Send{four_floats(), 3});  // while nobody listens
  Heard<Issued> issued(bus_);
  (void)issue(collective::Recv{{four_floats(), 3}});
  (void)issue(all_reduced());
  (void)issue(collective::BatchOpIssue{2, true});
  (void)issue(collective::NewWindow{});
  std::vector<std::uint32_t> counts;
  for (const Issued& one : issued.all()) counts.push_back(one.p2p_sequence);
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{2, 0, 3, 0}));
}

TEST_F(CommunicatorTest, AnOperationSaysTheTimeOutInSecondsRoundedUp) {
  Heard<Issued> issued(bus_);
  using std::chrono::milliseconds;
  const std::pair<milliseconds, std::uint32_t> all[] = {{milliseconds(0), 0},
                                                        {milliseconds(1), 1},
                                                        {milliseconds(600'000), 600},
                                                        {milliseconds(600'001), 601},
                                                        {std::chrono::hours(24), 65535}};
  for (const auto& [limit, said] : all) {
    comm_.set_timeout(limit);
    (void)issue(all_reduced());
    EXPECT_EQ(issued.all().back().timeout_s, said);
  }
}

TEST_F(CommunicatorTest, CollectivesAreCountedAlsoWhileNobodyListens) {
  (void)issue(all_reduced());
  Heard<Issued> issued(bus_);
  (void)issue(all_reduced());
  ASSERT_EQ(issued.all().size(), 1u);
  EXPECT_EQ(issued.all()[0].sequence, 2u);
}

TEST_F(CommunicatorTest, WhatNobodyHearsHasNoIdAndItsWordsAreHarmless) {
  const Operation operation = issue(all_reduced());
  EXPECT_EQ(operation.id(), 0u);
  EXPECT_FALSE(operation.started());
  EXPECT_FALSE(operation.completed());
  EXPECT_FALSE(operation.failed("x"));
  const Operation::Waiting waits(operation);
}

TEST_F(CommunicatorTest, AnEmptyOneReportsNothingAndTakesNoHook) {
  const Communicator empty;
  Heard<Issued> issued(bus_);
  EXPECT_TRUE(empty.run(all_reduced(), [](const Operation& one) { EXPECT_EQ(one.id(), 0u); }));
  EXPECT_FALSE(empty.pre_hook([](const collective::PreHookArgs&) { return Verdict::allow(); }));
  EXPECT_EQ(empty.abort("x").how, collective::Aborted::How::ended);
  EXPECT_FALSE(empty.part(world()));
  empty.end();
  EXPECT_TRUE(issued.all().empty());
}

TEST_F(CommunicatorTest, WhatABackendThrowsFailsTheOperationAndPassesOn) {
  Heard<Failed> failed(bus_);
  EXPECT_THROW(comm_.run(all_reduced(),
                         [](const Operation&) { throw std::runtime_error("no route to rank 3"); }),
               std::runtime_error);
  EXPECT_THROW(
      {
        auto issuing = comm_.issue(all_reduced());
        throw 7;
      },
      int);
  ASSERT_EQ(failed.all().size(), 2u);
  EXPECT_EQ(failed.all()[0].how, How::error);
  EXPECT_EQ(failed.all()[0].reason.view(), "no route to rank 3");
  EXPECT_EQ(failed.all()[1].reason.view(), "the backend threw an exception");
}

TEST_F(CommunicatorTest, AnOperationIssuedWhileAnExceptionPassesDidNotThrow) {
  Heard<Failed> failed(bus_);
  struct LeavesByBarrier {
    const Communicator& comm;
    ~LeavesByBarrier() { auto issuing = comm.issue(Barrier{}); }
  };
  EXPECT_THROW(
      {
        const LeavesByBarrier at_end{comm_};
        throw 7;
      },
      int);
  EXPECT_TRUE(failed.all().empty());
}

TEST_F(CommunicatorTest, TheBackendsCallIsMarkedAndNothingAfterIt) {
  Heard<Issued> issued(bus_);
  const auto ledger = Ledger::of(bus_).value();
  auto issuing = comm_.issue(all_reduced());
  EXPECT_EQ(ledger->mark(), issuing.operation().id());
  issuing.returned();
  EXPECT_EQ(ledger->mark(), 0u);
}

TEST_F(CommunicatorTest, AnInnerOneAddsToTheOuterOperationAndIssuesNothing) {
  CommunicatorOptions below = world();
  below.name = "below";
  below.source = "mpi";
  const auto inner = Communicator::make(bus_, below).value();
  Heard<Issued> issued(bus_);
  Heard<Completed> completed(bus_);
  std::uint64_t outer_id = 0;
  EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation& outer) {
    outer_id = outer.id();
    EXPECT_TRUE(inner.run(Barrier{}, [&](const Operation& part) {
      EXPECT_EQ(part.id(), outer.id());
      EXPECT_FALSE(part.completed());  // its barrier is not the whole all_reduce
    }));
    EXPECT_TRUE(inner.run(all_reduced(), [&](const Operation& same) {
      EXPECT_EQ(same.id(), outer.id());
      EXPECT_TRUE(same.completed());
    }));
    EXPECT_FALSE(outer.completed());
  }));
  ASSERT_EQ(issued.all().size(), 1u);
  ASSERT_EQ(completed.all().size(), 1u);
  EXPECT_EQ(completed.all()[0].op_id, outer_id);
  EXPECT_EQ(completed.all()[0].group.view(), "world");
}

TEST_F(CommunicatorTest, WhatAnyThreadSaysInAnyOrderIsBelievedOnce) {
  Heard<Completed> completed(bus_);
  Heard<Failed> failed(bus_);
  auto issuing = comm_.issue(all_reduced());
  const Operation operation = issuing.operation();
  std::thread([operation] { EXPECT_TRUE(operation.completed()); }).join();  // before it returned
  issuing.returned();
  EXPECT_FALSE(operation.started());
  EXPECT_EQ(completed.all().size(), 1u);
  EXPECT_TRUE(failed.all().empty());
}

TEST_F(CommunicatorTest, AnOperationOutlivesItsCommunicator) {
  Heard<Failed> failed(bus_);
  Operation operation;
  {
    CommunicatorOptions options = world();
    options.name = "short";
    const auto comm = Communicator::make(bus_, options).value();
    EXPECT_TRUE(comm.run(all_reduced(), [&](const Operation& one) { operation = one; }));
  }
  EXPECT_FALSE(operation.completed());
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].how, How::cancelled);
  EXPECT_EQ(failed.all()[0].op_id, operation.id());
}

TEST_F(CommunicatorTest, ShapesAreMadeOnlyWhileTheyAreHeard) {
  constexpr std::array<std::int64_t, 2> kMatrix{512, 96};
  const Tensor input{.sizes = kMatrix, .dtype = Name("float32"), .bytes = 196608};
  const std::array<Tensor, 3> output{four_floats(), input, Tensor{.dtype = Name("int64")}};
  {
    Heard<Issued> issued(bus_);
    (void)issue(collective::AllGather{input, output});
  }
  Heard<Shapes> shapes(bus_);
  (void)issue(collective::AllGather{input, output});
  ASSERT_EQ(shapes.all().size(), 1u);
  const Shapes said = shapes.all()[0];
  EXPECT_NE(said.op_id, 0u);
  EXPECT_EQ(said.op.view(), "all_gather");
  EXPECT_EQ(said.input.view(), "float32[512,96]");
  EXPECT_EQ(said.output.view(), "float32[4] float32[512,96] int64[]");
  EXPECT_EQ(said.inputs, 1u);
  EXPECT_EQ(said.outputs, 3u);
  EXPECT_EQ(said.cut, 0u);
}

TEST_F(CommunicatorTest, ShapesThatFindNoRoomAreCounted) {
  Heard<Shapes> shapes(bus_);
  const std::vector<Tensor> many(100, four_floats());  // of "float32[4] " 17 fit in 190
  (void)issue(collective::AllToAll{many, many});
  ASSERT_EQ(shapes.all().size(), 1u);
  const Shapes said = shapes.all()[0];
  EXPECT_EQ(said.inputs, 100u);
  EXPECT_EQ(said.cut, 2 * 83u);
  EXPECT_EQ(said.input.view().size(), 17 * 11u - 1);
  EXPECT_FALSE(said.input.cut());
}

TEST_F(CommunicatorTest, AThreadThatWaitsSaysSo) {
  Heard<Issued> issued(bus_);
  Heard<Wait> waits(bus_);
  const Operation operation = issue(all_reduced());
  { const Operation::Waiting waiting(operation); }
  ASSERT_EQ(waits.all().size(), 2u);
  EXPECT_EQ(waits.all()[0].edge, collective::Edge::begin);
  EXPECT_EQ(waits.all()[1].edge, collective::Edge::end);
  EXPECT_GT(waits.all()[1].duration_ns, 0);
  for (const Wait& one : waits.all()) {
    EXPECT_EQ(one.op_id, operation.id());
    EXPECT_EQ(one.group.view(), "world");
    EXPECT_EQ(one.operations, 1u);
    EXPECT_EQ(one.rank, 1);
  }
}

}  // namespace
}  // namespace ringmain::tests
