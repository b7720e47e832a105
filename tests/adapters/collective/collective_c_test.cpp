// Does C get what C++ has of communicators and operations?
#include <thread>

#include "events/collective.hpp"
#include "events/collective_life.hpp"

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/collective_c_support.hpp"
#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::How;
using collective::Issued;
using collective::Started;
using collective::Wait;

ringmain_communicator_state state_of(const ringmain_communicator* of) {
  ringmain_communicator_state state{};
  state.bytes = sizeof state;
  expect_ok(ringmain_communicator_read(of, &state));
  return state;
}

TEST_F(CCollectiveTest, ACommunicatorIsMadeFoundKeptAndEnded) {
  ringmain_communicator* found = nullptr;
  expect_ok(ringmain_communicator_find(bus_, "world", 1, &found));
  EXPECT_EQ(ringmain_communicator_same(found, world_), 1);
  ringmain_communicator* kept = nullptr;
  expect_ok(ringmain_communicator_retain(found, &kept));
  ringmain_communicator_free(found);
  const auto state = state_of(kept);
  EXPECT_EQ(state.rank, 1);
  EXPECT_EQ(state.size, 4);
  EXPECT_EQ(c_text(state.name), "world");
  EXPECT_EQ(c_text(state.backend), "mpi");
  EXPECT_EQ(state.ended + state.aborted + state.supports_abort, 0u);
  EXPECT_EQ(collective::Communicator::find(cpp(), "world").rank(), 1);

  ringmain_communicator_end(kept);
  EXPECT_EQ(state_of(world_).ended, 1u);
  expect_error(ringmain_communicator_find(bus_, "world", RINGMAIN_NO_RANK, &found),
               RINGMAIN_NOT_FOUND, "'world'");
  expect_error(run(c_barrier()), RINGMAIN_CLOSED, "has ended");
  ringmain_communicator_free(kept);
}

TEST_F(CCollectiveTest, ABusThatIsNullIsTheProcesss) {
  const ringmain_communicator_options options = c_world();
  ringmain_communicator* made = nullptr;
  expect_ok(ringmain_communicator_make(nullptr, &options, &made));
  EXPECT_TRUE(collective::Communicator::find(Bus::process(), "world"));
  ringmain_communicator* found = nullptr;
  expect_ok(ringmain_communicator_find(nullptr, "world", RINGMAIN_NO_RANK, &found));
  EXPECT_EQ(ringmain_communicator_same(found, made), 1);
  EXPECT_EQ(ringmain_communicator_same(found, world_), 0);
  ringmain_communicator_free(found);
  ringmain_communicator_free(made);
  EXPECT_FALSE(collective::Communicator::find(Bus::process(), "world"));
}

TEST_F(CCollectiveTest, OptionsThatCannotBeAreRefusedAndTheirUserDestroyed) {
  int destroyed = 0;
  ringmain_communicator_options good = c_world();
  good.abort = [](void*, std::uint32_t) {};
  good.user = &destroyed;
  good.destroy = [](void* user) { ++*static_cast<int*>(user); };
  ringmain_communicator* made = nullptr;
  const auto refused = [&](auto change, const char* part) {
    ringmain_communicator_options options = good;
    change(options);
    destroyed = 0;
    expect_error(ringmain_communicator_make(bus_, &options, &made), RINGMAIN_REFUSED, part);
    EXPECT_EQ(destroyed, 1) << part;
    expect_error(ringmain_communicator_part(world_, &options, &made), RINGMAIN_REFUSED, part);
    EXPECT_EQ(destroyed, 2) << part;
    EXPECT_EQ(made, nullptr);
  };
  refused([](auto& o) { o.name = nullptr; }, "needs the name");
  refused([](auto& o) { o.name = ""; }, "needs the name");
  refused([](auto& o) { o.rank = 4; }, "rank is 4");
  refused([](auto& o) { o.rank = -1; }, "rank is -1");
  refused([](auto& o) { o.size = 0; }, "size is 0");
  refused([](auto& o) { o.size = -3, o.ranks = &o.rank; }, "size is -3");
  refused([](auto& o) { o.device = -2; }, "device is -2");
  destroyed = 0;
  expect_error(ringmain_communicator_make(bus_, &good, nullptr), RINGMAIN_REFUSED, "no place");
  EXPECT_EQ(destroyed, 1);
  expect_error(ringmain_communicator_make(bus_, nullptr, &made), RINGMAIN_REFUSED,
               "options is NULL");
  expect_error(ringmain_communicator_part(nullptr, &good, &made), RINGMAIN_REFUSED, "is empty");
  good.bytes = 3;
  expect_error(ringmain_communicator_make(bus_, &good, &made), RINGMAIN_REFUSED, "bytes is 3");
}

TEST_F(CCollectiveTest, AnOlderCallersOptionsAreTakenAndANewersIfTheirRestIsZero) {
  struct Newer {
    ringmain_communicator_options known = c_world();
    std::uint64_t more = 0;
  } newer;
  newer.known.bytes = sizeof newer;
  ringmain_communicator* made = nullptr;
  expect_ok(ringmain_communicator_make(bus_, &newer.known, &made));
  ringmain_communicator_free(std::exchange(made, nullptr));
  newer.more = 1;
  expect_error(ringmain_communicator_make(bus_, &newer.known, &made), RINGMAIN_REFUSED, "newer");

  ringmain_communicator_options older = c_world();
  older.abort = [](void*, std::uint32_t) {};
  older.bytes = offsetof(ringmain_communicator_options, abort);
  expect_ok(ringmain_communicator_make(bus_, &older, &made));
  EXPECT_EQ(state_of(made).supports_abort, 0u) << "read beyond what the caller knows";
  struct {
    ringmain_communicator_state state{};
    std::uint32_t after = 0xabcdu;
  } short_one;
  short_one.state.bytes = offsetof(ringmain_communicator_state, backend);
  short_one.state.backend = 77;
  expect_ok(ringmain_communicator_read(made, &short_one.state));
  EXPECT_EQ(short_one.state.bytes, offsetof(ringmain_communicator_state, backend));
  EXPECT_EQ(short_one.state.backend, 77u) << "written beyond what the caller knows";
  ringmain_communicator_free(made);
}

TEST_F(CCollectiveTest, AnOperationIsSaidFromIssueToEnd) {
  Heard<Issued> issued(cpp());
  Heard<Started> started(cpp());
  Heard<Completed> completed(cpp());
  const std::int64_t four = 4;
  float memory[4]{};
  const ringmain_tensor tensor = c_floats(four, memory);
  ringmain_arguments arguments = RINGMAIN_ARGUMENTS;
  arguments.op = RINGMAIN_OP_ALL_REDUCE;
  arguments.reduce = RINGMAIN_REDUCE_SUM;
  arguments.input = arguments.output = &tensor;
  arguments.inputs = arguments.outputs = 1;
  arguments.async_op = 1;
  ringmain_operation* operation = nullptr;
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  ASSERT_NE(operation, nullptr);
  const std::uint64_t id = ringmain_operation_id(operation);
  std::uint64_t here = 0;
  expect_ok(ringmain_operation_here(bus_, &here));
  EXPECT_EQ(here, id);
  expect_ok(ringmain_operation_returned(operation, nullptr));
  expect_ok(ringmain_operation_here(bus_, &here));
  EXPECT_EQ(here, 0u);
  std::thread([&] {
    expect_ok(ringmain_operation_started(operation));
    expect_ok(ringmain_operation_completed(operation));
    expect_error(ringmain_operation_completed(operation), RINGMAIN_NOT_ATTACHED, "is over");
    expect_error(ringmain_operation_failed(operation, RINGMAIN_FAILED_ERROR, "late", 1),
                 RINGMAIN_NOT_ATTACHED, "is over");
    ringmain_operation_free(operation);
  }).join();
  ASSERT_EQ(issued.all().size(), 1u);
  const Issued said = issued.all()[0];
  EXPECT_EQ(said.op_id, id);
  EXPECT_EQ(said.op.view(), "all_reduce");
  EXPECT_EQ(said.dtype.view(), "float32");
  EXPECT_EQ(said.bytes, 16u);
  EXPECT_EQ(said.in_elements, 4u);
  EXPECT_EQ(said.source.view(), "shim");
  EXPECT_EQ(said.device, RINGMAIN_NO_DEVICE);
  EXPECT_TRUE(said.asynchronous);
  ASSERT_EQ(started.all().size(), 1u);
  EXPECT_EQ(started.all()[0].op_id, id);
  ASSERT_EQ(completed.all().size(), 1u);
  EXPECT_EQ(completed.all()[0].op_id, id);
}

TEST_F(CCollectiveTest, AFailureSaysHowWhyAndTheVendorsCode) {
  Heard<Failed> failed(cpp());
  ringmain_operation* operation = nullptr;
  const ringmain_arguments arguments = c_barrier();
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  expect_error(ringmain_operation_failed(operation, 6, "", 0), RINGMAIN_REFUSED, "how is 6");
  expect_ok(ringmain_operation_failed(operation, RINGMAIN_FAILED_TIMED_OUT, "too late", -7));
  ringmain_operation_free(operation);  // before its call has returned
  expect_ok(ringmain_operation_returned(operation, nullptr));
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  expect_ok(ringmain_operation_threw(operation, "no route"));
  ringmain_operation_free(operation);
  const auto said = failed.all();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].how, How::timed_out);
  EXPECT_EQ(said[0].reason.view(), "too late");
  EXPECT_EQ(said[0].result, -7);
  EXPECT_NE(said[0].thread, 0);
  EXPECT_EQ(said[1].how, How::error);
  EXPECT_EQ(said[1].reason.view(), "no route");
}

TEST_F(CCollectiveTest, CallsReturnInTheirOwnThreadTheInnermostFirstAndOnce) {
  Heard<Issued> issued(cpp());
  ringmain_operation *outer = nullptr, *inner = nullptr;
  const ringmain_arguments arguments = c_barrier();
  expect_ok(ringmain_issue(world_, &arguments, &outer));
  expect_ok(ringmain_issue(world_, &arguments, &inner));
  EXPECT_EQ(ringmain_operation_id(inner), ringmain_operation_id(outer))
      << "a part of the outer one";
  expect_error(ringmain_operation_returned(outer, nullptr), RINGMAIN_REFUSED, "issued last");
  std::thread([&] {
    expect_error(ringmain_operation_threw(inner, "x"), RINGMAIN_REFUSED, "in its own thread");
  }).join();
  expect_ok(ringmain_operation_returned(inner, nullptr));
  expect_error(ringmain_operation_returned(inner, nullptr), RINGMAIN_REFUSED, "once");
  expect_error(ringmain_operation_returned_part(inner, nullptr), RINGMAIN_REFUSED, "once");
  expect_ok(ringmain_operation_returned(outer, nullptr));
  std::uint64_t here = 1;
  expect_ok(ringmain_operation_here(bus_, &here));
  EXPECT_EQ(here, 0u);
  expect_ok(ringmain_operation_completed(outer));
  ringmain_operation_free(outer);
  ringmain_operation_free(inner);
  EXPECT_EQ(issued.all().size(), 1u);
}

TEST_F(CCollectiveTest, WhereNobodyListensThereIsNoOperation) {
  ringmain_operation* operation = nullptr;
  int place = 0;
  operation = reinterpret_cast<ringmain_operation*>(&place);
  const ringmain_arguments arguments = c_barrier();
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  EXPECT_EQ(operation, nullptr);
  expect_ok(ringmain_operation_returned(operation, nullptr));
  expect_ok(ringmain_operation_returned_part(operation, world_));
  expect_ok(ringmain_operation_threw(operation, nullptr));
  EXPECT_EQ(ringmain_operation_started(operation), RINGMAIN_UNHEARD);
  EXPECT_EQ(ringmain_operation_completed(operation), RINGMAIN_UNHEARD);
  EXPECT_EQ(ringmain_operation_failed(operation, RINGMAIN_FAILED_ERROR, nullptr, 0),
            RINGMAIN_UNHEARD);
  EXPECT_EQ(ringmain_operation_id(operation), 0u);
  EXPECT_EQ(ringmain_operation_wait_begin(operation), 0);
  ringmain_operation_wait_end(operation, 5);
  ringmain_operation_free(operation);
}

TEST_F(CCollectiveTest, AThreadThatWaitsIsSaidAtBothEdges) {
  Heard<Wait> waits(cpp());
  Heard<Issued> issued(cpp());
  ringmain_operation* operation = nullptr;
  const ringmain_arguments arguments = c_barrier();
  expect_ok(ringmain_issue(world_, &arguments, &operation));
  expect_ok(ringmain_operation_returned(operation, nullptr));
  const std::int64_t begun = ringmain_operation_wait_begin(operation);
  EXPECT_NE(begun, 0);
  ringmain_operation_wait_end(operation, begun);
  ringmain_operation_wait_end(operation, 0);  // nobody listened when it began
  expect_ok(ringmain_operation_completed(operation));
  const auto said = waits.all();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].edge, collective::Edge::begin);
  EXPECT_EQ(said[1].edge, collective::Edge::end);
  EXPECT_EQ(said[1].op_id, ringmain_operation_id(operation));
  ringmain_operation_free(operation);
}

TEST_F(CCollectiveTest, ASplitHasAPartOrNone) {
  Heard<Group> groups(cpp());
  ringmain_communicator_options options = c_world();
  const std::int32_t ranks[] = {0, 1};
  options.name = "half";
  options.size = 2;
  options.ranks = ranks;
  ringmain_communicator* part = nullptr;
  expect_ok(ringmain_communicator_part(world_, &options, &part));
  ringmain_communicator_no_part(world_);
  ringmain_communicator_no_part(nullptr);
  const auto said = groups.all();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].change, GroupChange::split);
  EXPECT_EQ(said[0].group.view(), "half");
  EXPECT_EQ(said[0].parent.view(), "world");
  EXPECT_EQ(said[0].ranks.view(), "0-1");
  EXPECT_EQ(said[1].group.view(), "");
  ringmain_communicator_free(part);
}

TEST_F(CCollectiveTest, WhatIsNullIsRefusedInASentence) {
  ringmain_communicator* comm = nullptr;
  ringmain_operation* operation = nullptr;
  const ringmain_arguments arguments = c_barrier();
  expect_error(ringmain_communicator_find(bus_, nullptr, 0, &comm), RINGMAIN_REFUSED, "group");
  expect_error(ringmain_communicator_find(bus_, "world", 0, nullptr), RINGMAIN_REFUSED, "place");
  expect_error(ringmain_communicator_find(bus_, "world", 3, &comm), RINGMAIN_NOT_FOUND, "rank");
  expect_error(ringmain_communicator_retain(nullptr, &comm), RINGMAIN_REFUSED, "communicator");
  expect_error(ringmain_communicator_retain(world_, nullptr), RINGMAIN_REFUSED, "place");
  expect_error(ringmain_communicator_read(world_, nullptr), RINGMAIN_REFUSED, "state is NULL");
  ringmain_communicator_state state{};
  expect_error(ringmain_communicator_read(nullptr, &state), RINGMAIN_REFUSED, "communicator");
  expect_error(ringmain_communicator_read(world_, &state), RINGMAIN_REFUSED, "bytes is 0");
  expect_error(ringmain_issue(nullptr, &arguments, &operation), RINGMAIN_REFUSED, "communicator");
  expect_error(ringmain_issue(world_, nullptr, &operation), RINGMAIN_REFUSED, "arguments is NULL");
  expect_error(ringmain_issue(world_, &arguments, nullptr), RINGMAIN_REFUSED, "operation is NULL");
  expect_error(ringmain_operation_here(bus_, nullptr), RINGMAIN_REFUSED, "op_id is NULL");
  ringmain_communicator_free(nullptr);
  ringmain_communicator_end(nullptr);
  EXPECT_EQ(ringmain_communicator_same(nullptr, nullptr), 0);
}

}  // namespace
}  // namespace ringmain::tests
