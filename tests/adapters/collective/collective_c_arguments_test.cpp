// Do hooks see a C caller's arguments as the struct of their operation, and C's hooks C++'s?
#include <array>
#include <functional>
#include <optional>
#include <variant>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/collective_c_support.hpp"

namespace ringmain::tests {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): a name of each struct

class CArgumentsTest : public CCollectiveTest {
 protected:
  CArgumentsTest() {
    a_.bytes = sizeof a_;
    a_.peer = 3;
    a_.reduce = RINGMAIN_REDUCE_MAX;
    a_.async_op = 1;
  }
  /// What hooks of C++ see of `a_` with so many tensors: `look` is called with it.
  void expect_seen(std::uint32_t op, std::uint32_t inputs, std::uint32_t outputs,
                   const std::function<void(const PreHookArgs&)>& look) {
    a_.op = op;
    a_.inputs = inputs;
    a_.outputs = outputs;
    a_.input = inputs == 0 ? nullptr : in_.data();
    a_.output = outputs == 0 ? nullptr : out_.data();
    int calls = 0;
    const Hook hook = cpp_world()
                          .pre_hook([&](const PreHookArgs& args) {
                            ++calls;
                            look(args);
                            return Verdict::allow();
                          })
                          .value();
    expect_ok(run(a_));
    EXPECT_EQ(calls, 1);
  }
  template <class Struct>
  void expect_is(
      std::uint32_t op, std::uint32_t inputs, std::uint32_t outputs,
      std::function<void(const Struct&)> look = [](const Struct&) {}) {
    expect_seen(op, inputs, outputs, [&](const PreHookArgs& args) {
      const auto* const found = std::get_if<Struct>(args.arguments);
      ASSERT_NE(found, nullptr) << "op " << op << " is another: " << args.arguments->index();
      if constexpr (requires { found->async_op; }) {
        EXPECT_TRUE(found->async_op);
      }
      look(*found);
    });
  }
  void expect_other(std::uint32_t op, std::uint32_t inputs, std::uint32_t outputs,
                    const char* word) {
    expect_is<Other>(op, inputs, outputs, [&](const Other& other) {
      EXPECT_EQ(other.op, word);
      EXPECT_EQ(other.input.size(), inputs);
      EXPECT_EQ(other.output.size(), outputs);
    });
  }

  const std::int64_t four_ = 4, eight_ = 8;
  float memory_[16]{};
  // More than a list that needs no memory of its own.
  std::array<ringmain_tensor, 6> in_{c_floats(four_, memory_),     c_floats(four_, memory_ + 1),
                                     c_floats(four_, memory_ + 2), c_floats(four_, memory_ + 3),
                                     c_floats(four_, memory_ + 4), c_floats(four_, memory_ + 5)};
  std::array<ringmain_tensor, 6> out_{c_floats(eight_, memory_ + 8),
                                      c_floats(four_),
                                      c_floats(four_),
                                      c_floats(four_),
                                      c_floats(four_),
                                      c_floats(eight_)};
  ringmain_arguments a_ = RINGMAIN_ARGUMENTS;
};

TEST_F(CArgumentsTest, EachOperationHasItsStructWhereTheTensorsFit) {
  expect_is<Send>(RINGMAIN_OP_SEND, 1, 0, [&](const Send& a) {
    EXPECT_EQ(a.tensor.data, memory_);
    EXPECT_EQ(a.peer, 3);
  });
  expect_is<Recv>(RINGMAIN_OP_RECV, 0, 1, [&](const Recv& a) {
    EXPECT_EQ(a.tensor.elements(), 8u);
    EXPECT_EQ(a.peer, 3);
  });
  expect_is<Broadcast>(RINGMAIN_OP_BROADCAST, 1, 0,
                       [](const Broadcast& a) { EXPECT_EQ(a.root, 3); });
  expect_is<AllReduce>(RINGMAIN_OP_ALL_REDUCE, 0, 1,
                       [](const AllReduce& a) { EXPECT_EQ(a.op, ReduceOp::max); });
  expect_is<Reduce>(RINGMAIN_OP_REDUCE, 1, 0, [](const Reduce& a) {
    EXPECT_EQ(a.root, 3);
    EXPECT_EQ(a.op, ReduceOp::max);
  });
  expect_is<AllGather>(RINGMAIN_OP_ALL_GATHER, 1, 6, [](const AllGather& a) {
    ASSERT_EQ(a.output.size(), 6u);
    EXPECT_EQ(a.output[5].elements(), 8u);
    EXPECT_EQ(a.output[5].dtype.view(), "float32");
  });
  expect_is<AllGatherV>(RINGMAIN_OP_ALL_GATHER_V, 1, 2);
  expect_is<AllGatherSingle>(RINGMAIN_OP_ALL_GATHER_SINGLE, 1, 1);
  expect_is<ReduceScatter>(RINGMAIN_OP_REDUCE_SCATTER, 6, 1, [&](const ReduceScatter& a) {
    EXPECT_EQ(a.input[5].data, memory_ + 5);
    EXPECT_EQ(a.op, ReduceOp::max);
  });
  expect_is<ReduceScatterV>(RINGMAIN_OP_REDUCE_SCATTER_V, 2, 1);
  expect_is<ReduceScatterSingle>(RINGMAIN_OP_REDUCE_SCATTER_SINGLE, 1, 1);
  expect_is<AllToAllSingle>(RINGMAIN_OP_ALL_TO_ALL_SINGLE, 1, 1);
  expect_is<AllToAll>(RINGMAIN_OP_ALL_TO_ALL, 2, 3);
  expect_is<Barrier>(RINGMAIN_OP_BARRIER, 0, 0);
  expect_is<Scatter>(RINGMAIN_OP_SCATTER, 0, 1, [](const Scatter& a) { EXPECT_EQ(a.root, 3); });
  expect_is<Gather>(RINGMAIN_OP_GATHER, 1, 2, [](const Gather& a) { EXPECT_EQ(a.root, 3); });
  expect_is<GatherSingle>(RINGMAIN_OP_GATHER_SINGLE, 1, 1);
  expect_is<GatherSingle>(RINGMAIN_OP_GATHER_SINGLE, 1, 0, [](const GatherSingle& a) {
    EXPECT_EQ(a.output.elements(), 0u) << "only the root gets any";
  });
  expect_is<NewWindow>(RINGMAIN_OP_NEW_WINDOW, 0, 0);
  expect_is<Finalize>(RINGMAIN_OP_FINALIZE, 0, 0);
}

TEST_F(CArgumentsTest, WhatOnlySomeHaveIsThere) {
  const std::uint64_t in[] = {1, 2, 3}, out[] = {4, 5, 6};
  const std::int32_t ranks[] = {0, 2};
  a_.in_split = in;
  a_.out_split = out;
  a_.splits = 3;
  a_.ranks = ranks;
  a_.ranks_count = 2;
  a_.new_group = "half";
  a_.operations = 9;
  expect_is<AllToAllVSingle>(RINGMAIN_OP_ALL_TO_ALL_V_SINGLE, 1, 1, [&](const AllToAllVSingle& a) {
    ASSERT_EQ(a.input_split_sizes.size(), 3u);
    EXPECT_EQ(a.input_split_sizes[2], 3u);
    EXPECT_EQ(a.output_split_sizes[2], 6u);
  });
  expect_is<Split>(RINGMAIN_OP_SPLIT, 0, 0, [](const Split& a) {
    ASSERT_EQ(a.ranks.size(), 2u);
    EXPECT_EQ(a.ranks[1], 2);
    EXPECT_EQ(a.name, "half");
  });
  expect_is<BatchOpIssue>(RINGMAIN_OP_BATCH_OP_ISSUE, 0, 0,
                          [](const BatchOpIssue& a) { EXPECT_EQ(a.num_ops, 9u); });
}

TEST_F(CArgumentsTest, TensorsThatDoNotFitAreAnotherOperationOfTheSameWord) {
  out_[0] = in_[1];
  expect_other(RINGMAIN_OP_ALL_REDUCE, 1, 1, "all_reduce");  // to other memory
  out_[0].data = nullptr;
  expect_other(RINGMAIN_OP_ALL_REDUCE, 1, 1, "all_reduce");  // to who knows where
  out_[0] = in_[0];
  expect_is<AllReduce>(RINGMAIN_OP_ALL_REDUCE, 1, 1);
  expect_other(RINGMAIN_OP_ALL_REDUCE, 0, 0, "all_reduce");
  expect_other(RINGMAIN_OP_BROADCAST, 2, 0, "broadcast");
  expect_other(RINGMAIN_OP_REDUCE, 2, 1, "reduce");
  expect_other(RINGMAIN_OP_SEND, 1, 1, "send");
  expect_other(RINGMAIN_OP_RECV, 1, 0, "recv");
  expect_other(RINGMAIN_OP_ALL_GATHER, 2, 2, "all_gather");
  expect_other(RINGMAIN_OP_ALL_GATHER_SINGLE, 1, 2, "all_gather_single");
  expect_other(RINGMAIN_OP_REDUCE_SCATTER, 2, 2, "reduce_scatter");
  expect_other(RINGMAIN_OP_SCATTER, 2, 0, "scatter");
  expect_other(RINGMAIN_OP_GATHER, 0, 2, "gather");
  expect_other(RINGMAIN_OP_GATHER_SINGLE, 1, 2, "gather_single");
  expect_other(RINGMAIN_OP_BARRIER, 1, 0, "barrier");
  expect_other(RINGMAIN_OP_SPLIT, 1, 0, "split");
  expect_other(RINGMAIN_OP_NEW_WINDOW, 1, 0, "new_window");
  expect_other(RINGMAIN_OP_BATCH_OP_ISSUE, 1, 0, "batch_op_issue");
  expect_other(RINGMAIN_OP_FINALIZE, 1, 0, "finalize");
}

TEST_F(CArgumentsTest, AnOperationIsFoundByAnyonesWordOfIt) {
  a_.word = "ncclAllReduce";
  expect_is<AllReduce>(RINGMAIN_OP_OTHER, 1, 0);
  a_.word = "all_gather_single";
  expect_is<AllGatherSingle>(RINGMAIN_OP_OTHER, 1, 1);
  a_.word = "MPI_Ibarrier";
  expect_is<Barrier>(RINGMAIN_OP_OTHER, 0, 0);
  a_.word = "MPI_Exscan";
  expect_seen(RINGMAIN_OP_OTHER, 1, 1, [](const PreHookArgs& args) {
    EXPECT_EQ(args.name, OpName::other);
    EXPECT_EQ(args.op.view(), "exclusive_scan");
  });
  a_.word = "reduce_on_mars";
  a_.point_to_point = 1;
  expect_is<Other>(RINGMAIN_OP_OTHER, 1, 0, [](const Other& other) {
    EXPECT_EQ(other.op, "reduce_on_mars");
    EXPECT_TRUE(other.point_to_point);
    EXPECT_EQ(other.reduce, ReduceOp::max);
    EXPECT_EQ(other.peer, 3);
  });
}

/// What a pre hook of C sees.
struct Seen {
  std::uint32_t op = 99, inputs = 0, outputs = 0, splits = 0, ranks = 0, operations = 0;
  std::int64_t last_size = 0;
  const void* object = nullptr;
  std::int32_t peer = 0;
  std::uint32_t reduce = 0, point_to_point = 0;
  std::uint64_t last_split = 0;
  std::string new_group, word;
  static std::uint32_t see(void* user, const ringmain_pre_hook_args* args) {
    auto& self = *static_cast<Seen*>(user);
    const ringmain_arguments& a = *args->arguments;
    self = {};
    self.op = args->op;
    EXPECT_EQ(a.op, args->op);
    EXPECT_EQ(a.bytes, sizeof a);
    EXPECT_EQ(a.tensor_bytes, sizeof(ringmain_tensor));
    EXPECT_EQ(a.word, nullptr);
    self.word = c_text(args->word);
    self.inputs = a.inputs;
    self.outputs = a.outputs;
    if (a.inputs != 0) {
      const ringmain_tensor& last = a.input[a.inputs - 1];
      self.object = last.object;
      if (last.dimensions != 0) self.last_size = last.sizes[last.dimensions - 1];
    }
    self.peer = a.peer;
    self.reduce = a.reduce;
    self.point_to_point = a.point_to_point;
    self.splits = a.splits;
    if (a.splits != 0 && a.out_split != nullptr) self.last_split = a.out_split[a.splits - 1];
    self.ranks = a.ranks_count;
    self.operations = a.operations;
    if (a.new_group != nullptr) self.new_group = a.new_group;
    return 0;
  }
};

TEST_F(CArgumentsTest, AHookOfCSeesWhatCppCalledFor) {
  Seen seen;
  ringmain_hook* hook = nullptr;
  expect_ok(ringmain_pre_hook(world_, Seen::see, &seen, nullptr, nullptr, &hook));
  const collective::Communicator comm = cpp_world();
  const auto run = [&](const Arguments& arguments) {
    EXPECT_TRUE(comm.run(arguments, [](const Operation&) {}));
  };
  const std::array<std::int64_t, 2> sizes{2, 5};
  std::array<Tensor, 6> many;
  many[5].sizes = sizes;
  many[5].object = &seen;
  run(ReduceScatter{many, Tensor{}, ReduceOp::bit_or, false});
  EXPECT_EQ(seen.op, std::uint32_t{RINGMAIN_OP_REDUCE_SCATTER});
  EXPECT_EQ(seen.word, "reduce_scatter");
  EXPECT_EQ(seen.inputs, 6u);
  EXPECT_EQ(seen.outputs, 1u);
  EXPECT_EQ(seen.last_size, 5);
  EXPECT_EQ(seen.object, &seen);
  EXPECT_EQ(seen.reduce, std::uint32_t{RINGMAIN_REDUCE_BIT_OR});
  run(Send{many[5], 2, true});
  EXPECT_EQ(seen.op, std::uint32_t{RINGMAIN_OP_SEND});
  EXPECT_EQ(seen.peer, 2);
  EXPECT_EQ(seen.point_to_point, 1u);
  const std::array<std::uint64_t, 3> splits{1, 2, 7};
  run(AllToAllVSingle{Tensor{}, Tensor{}, {}, splits, false});
  EXPECT_EQ(seen.splits, 3u);
  EXPECT_EQ(seen.last_split, 7u);
  const std::array<int, 2> ranks{0, 1};
  run(Split{ranks, std::string_view("half of it").substr(0, 4)});
  EXPECT_EQ(seen.ranks, 2u);
  EXPECT_EQ(seen.new_group, "half");
  run(BatchOpIssue{4, false});
  EXPECT_EQ(seen.operations, 4u);
  Other other;
  other.op = "all_gather_w";
  run(other);
  EXPECT_EQ(seen.op, std::uint32_t{RINGMAIN_OP_OTHER});
  EXPECT_EQ(seen.word, "all_gather_w");
  ringmain_hook_free(hook);
}

TEST_F(CArgumentsTest, WhatCannotBeIsRefusedInASentence) {
  ringmain_operation* operation = nullptr;
  const auto refused = [&](auto change, const char* part) {
    ringmain_arguments arguments = a_;
    arguments.op = RINGMAIN_OP_ALL_REDUCE;
    arguments.input = in_.data();
    arguments.inputs = 1;
    ringmain_tensor tensor = in_[0];
    change(arguments, tensor);
    if (arguments.input == in_.data()) arguments.input = &tensor;
    expect_error(ringmain_issue(world_, &arguments, &operation), RINGMAIN_REFUSED, part);
    EXPECT_EQ(operation, nullptr);
  };
  refused([](auto& a, auto&) { a.bytes = 0; }, "bytes is 0");
  refused([](auto& a, auto&) { a.bytes = 5000; }, "bytes is 5000");
  refused([](auto& a, auto&) { a.op = 23; }, "op is 23");
  refused([](auto& a, auto&) { a.op = RINGMAIN_OP_OTHER; }, "neither op nor word");
  refused([](auto& a, auto&) { a.op = 0, a.word = ""; }, "neither op nor word");
  refused([](auto& a, auto&) { a.word = "send"; }, "set one of them");
  refused([](auto& a, auto&) { a.reduce = 10; }, "reduce is 10");
  refused([](auto& a, auto&) { a.peer = -2; }, "peer is -2");
  refused([](auto& a, auto&) { a.input = nullptr; }, "input is NULL");
  refused([](auto& a, auto&) { a.outputs = 2; }, "output is NULL");
  refused([](auto& a, auto&) { a.ranks_count = 2; }, "ranks is NULL");
  refused([](auto& a, auto&) { a.tensor_bytes = 0; }, "tensor_bytes is 0");
  refused([](auto& a, auto&) { a.tensor_bytes = 47; }, "tensor_bytes is 47");
  refused([](auto& a, auto&) { a.tensor_bytes = 4097; }, "tensor_bytes is 4097");
  refused([](auto&, auto& t) { t.sizes = nullptr; }, "input[0].sizes is NULL");
  const std::int64_t negative = -1;
  refused([&](auto&, auto& t) { t.sizes = &negative; }, "input[0].sizes has one below 0");
}

TEST_F(CArgumentsTest, ALongerTensorOfANewerCallerIsTakenWhileItsRestIsZero) {
  struct Longer {
    ringmain_tensor known;
    std::uint64_t more = 0;
  };
  std::array<Longer, 2> longer{Longer{in_[0]}, Longer{in_[1]}};
  a_.word = "two";
  a_.input = &longer[0].known;
  a_.inputs = 2;
  a_.tensor_bytes = sizeof(Longer);
  int calls = 0;
  const Hook hook = cpp_world()
                        .pre_hook([&](const PreHookArgs& args) {
                          const auto& other = std::get<Other>(*args.arguments);
                          EXPECT_EQ(other.input[1].data, memory_ + 1);
                          ++calls;
                          return Verdict::allow();
                        })
                        .value();
  expect_ok(run(a_));
  EXPECT_EQ(calls, 1);
  longer[1].more = 1;
  expect_error(run(a_), RINGMAIN_REFUSED, "input[1] has a member");
}

TEST_F(CArgumentsTest, AnOlderCallersArgumentsAreTaken) {
  a_.op = RINGMAIN_OP_BATCH_OP_ISSUE;
  a_.operations = 5;
  a_.bytes = offsetof(ringmain_arguments, operations);
  int calls = 0;
  const Hook hook = cpp_world()
                        .pre_hook([&](const PreHookArgs& args) {
                          EXPECT_EQ(std::get<BatchOpIssue>(*args.arguments).num_ops, 0u);
                          ++calls;
                          return Verdict::allow();
                        })
                        .value();
  expect_ok(run(a_));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ringmain::tests
