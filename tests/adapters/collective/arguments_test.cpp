// Does each operation say what is common to all: its tensors, its peer or root, its reduction?
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/collective_arguments.hpp"
#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using namespace collective;

struct Row {
  Arguments arguments;
  std::string_view name;  // torchcomms'
  std::string_view op;    // in events
  std::size_t inputs, outputs;
  std::int32_t peer;
  bool reduces, point_to_point, lifecycle;
};

std::vector<Row> all_operations() {
  static const std::array<Tensor, 3> list{four_floats(), four_floats(), four_floats()};
  const Tensor one = four_floats();
  const auto op = ReduceOp::max;
  return {
      {Send{one, 2, true}, "send", "send", 1, 0, 2, false, true, false},
      {Recv{{one, 2, true}}, "recv", "recv", 0, 1, 2, false, true, false},
      {Broadcast{one, 3, true}, "broadcast", "broadcast", 1, 1, 3, false, false, false},
      {AllReduce{one, op, true}, "all_reduce", "all_reduce", 1, 1, -1, true, false, false},
      {Reduce{one, 3, op, true}, "reduce", "reduce", 1, 1, 3, true, false, false},
      {AllGather{one, list, true}, "all_gather", "all_gather", 1, 3, -1, false, false, false},
      {AllGatherV{{one, list, true}}, "all_gather_v", "all_gather_v", 1, 3, -1, false, false,
       false},
      {AllGatherSingle{one, one, true}, "all_gather_single", "all_gather", 1, 1, -1, false, false,
       false},
      {ReduceScatter{list, one, op, true}, "reduce_scatter", "reduce_scatter", 3, 1, -1, true,
       false, false},
      {ReduceScatterV{{list, one, op, true}}, "reduce_scatter_v", "reduce_scatter_v", 3, 1, -1,
       true, false, false},
      {ReduceScatterSingle{one, one, op, true}, "reduce_scatter_single", "reduce_scatter", 1, 1, -1,
       true, false, false},
      {AllToAllSingle{one, one, true}, "all_to_all_single", "all_to_all", 1, 1, -1, false, false,
       false},
      {AllToAllVSingle{one, one, {}, {}, true}, "all_to_all_v_single", "all_to_all_v", 1, 1, -1,
       false, false, false},
      {AllToAll{list, list, true}, "all_to_all", "all_to_all", 3, 3, -1, false, false, false},
      {Barrier{true}, "barrier", "barrier", 0, 0, -1, false, false, false},
      {Scatter{one, list, 1, true}, "scatter", "scatter", 3, 1, 1, false, false, false},
      {Gather{one, list, 1, true}, "gather", "gather", 1, 3, 1, false, false, false},
      {GatherSingle{one, one, 1, true}, "gather_single", "gather", 1, 1, 1, false, false, false},
      {Split{{}, "half"}, "split", "split", 0, 0, -1, false, false, true},
      {NewWindow{}, "new_window", "new_window", 0, 0, -1, false, false, true},
      {BatchOpIssue{2, true}, "batch_op_issue", "coalesced", 0, 0, -1, false, true, false},
      {Finalize{}, "finalize", "finalize", 0, 0, -1, false, false, true},
      {Other{"scan", list, list, 1, op, false, true}, "other", "scan", 3, 3, 1, true, false,
       false}};
}

TEST(ArgumentsTest, EachOperationSaysWhatItHas) {
  const std::vector<Row> rows = all_operations();
  ASSERT_EQ(rows.size(), kOpNames + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    SCOPED_TRACE(std::string(row.name));
    EXPECT_EQ(row.arguments.index(), i);
    EXPECT_EQ(to_string(op_name(row.arguments)), row.name);
    const ArgumentsView view = view_of(row.arguments);
    EXPECT_EQ(view.input.size(), row.inputs);
    EXPECT_EQ(view.output.size(), row.outputs);
    EXPECT_EQ(view.peer, row.peer);
    EXPECT_EQ(view.reduces, row.reduces);
    EXPECT_EQ(view.reduce, row.reduces ? ReduceOp::max : ReduceOp::other);
    EXPECT_EQ(view.point_to_point, row.point_to_point);
    EXPECT_EQ(view.lifecycle, row.lifecycle);
    EXPECT_EQ(view.async_op, !row.lifecycle);
  }
}

TEST(ArgumentsTest, EachOperationIsPublishedByTheWordOfEvents) {
  Bus bus;
  const auto comm = Communicator::make(bus, world()).value();
  for (const Row& row : all_operations()) {
    if (row.name == "finalize") continue;  // it is said as the group's end
    SCOPED_TRACE(std::string(row.name));
    Heard<Issued> issued(bus);
    EXPECT_TRUE(comm.run(row.arguments, [](const Operation&) {}));
    ASSERT_EQ(issued.all().size(), 1u);
    const Issued said = issued.all()[0];
    EXPECT_EQ(said.op.view(), row.op);
    EXPECT_EQ(said.in_elements, row.inputs * 4);
    EXPECT_EQ(said.out_elements, row.outputs * 4);
    EXPECT_EQ(said.bytes, std::max(row.inputs, row.outputs) * 16);
    EXPECT_EQ(said.peer, row.peer);
    EXPECT_EQ(said.sequence != 0, !row.point_to_point && !row.lifecycle);
  }
}

TEST(ArgumentsTest, EveryReductionHasAWord) {
  EXPECT_EQ(to_string(ReduceOp::sum), "sum");
  EXPECT_EQ(to_string(ReduceOp::bit_xor), "bit_xor");
  EXPECT_EQ(to_string(ReduceOp::premul_sum), "premul_sum");
  EXPECT_EQ(to_string(ReduceOp::other), "other");
}

TEST(ArgumentsTest, ATensorsElementsAreTheProductOfItsSizes) {
  static constexpr std::array<std::int64_t, 3> kSizes{2, 3, 0};
  EXPECT_EQ(Tensor{}.elements(), 1u);
  EXPECT_EQ(Tensor{.sizes = kSizes}.elements(), 0u);
  EXPECT_EQ(four_floats().elements(), 4u);
}

}  // namespace
}  // namespace ringmain::tests
