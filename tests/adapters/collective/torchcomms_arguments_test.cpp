// Do torchcomms' arguments become ours and back, field by field, for each of its operations?
#include "adapters/sources/collective/torchcomms_arguments.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/collective/torchcomms_stand_in.hpp"

namespace ringmain::tests {
namespace {

using collective::ArgumentsView;
using collective::OpName;
using collective::torchcomms::ArgumentsOf;
using collective::torchcomms::reduce_op_of;
using collective::torchcomms::ShownAs;
using collective::torchcomms::tensor_of;
using stand_in::Tensor;
using stand_in::Tensors;
using Red = stand_in::ReduceOp::RedOpType;

struct MakeSized {
  Tensor operator()(const collective::Tensor& ours) const {
    return Tensor({ours.sizes.begin(), ours.sizes.end()});
  }
};
using Shown = ShownAs<stand_in::PreHookArgs, MakeSized>;

class TorchcommsArgumentsTest : public testing::Test {
 protected:
  Tensor one_{{3}}, two_{{2, 4}};
  const Tensors many_{Tensor({5}), Tensor({6})};
  const stand_in::ReduceOp max_{Red::MAX};
  const std::vector<std::uint64_t> give_{1, 2}, get_{2, 1};
  const std::vector<int> ranks_{4, 2};
  const std::string name_ = "half";
  /// One of each, in the order of OpName.
  const std::vector<stand_in::PreHookArgs> all_{
      stand_in::SendPreHookArgs{one_, 3, true},
      stand_in::RecvPreHookArgs{one_, 2, false},
      stand_in::BroadcastPreHookArgs{one_, 5, true},
      stand_in::AllReducePreHookArgs{one_, max_, true},
      stand_in::ReducePreHookArgs{one_, 6, max_, true},
      stand_in::AllGatherPreHookArgs{one_, many_, true},
      stand_in::AllGatherVPreHookArgs{one_, many_, true},
      stand_in::AllGatherSinglePreHookArgs{one_, two_, true},
      stand_in::ReduceScatterPreHookArgs{many_, two_, max_, true},
      stand_in::ReduceScatterVPreHookArgs{many_, two_, max_, true},
      stand_in::ReduceScatterSinglePreHookArgs{one_, two_, max_, true},
      stand_in::AllToAllSinglePreHookArgs{one_, two_, true},
      stand_in::AllToAllVSinglePreHookArgs{one_, two_, give_, get_, true},
      stand_in::AllToAllPreHookArgs{many_, many_, true},
      stand_in::BarrierPreHookArgs{true},
      stand_in::ScatterPreHookArgs{two_, many_, 7, true},
      stand_in::GatherPreHookArgs{one_, many_, 8, true},
      stand_in::GatherSinglePreHookArgs{one_, two_, 9, true},
      stand_in::SplitPreHookArgs{ranks_, name_},
      stand_in::NewWindowPreHookArgs{},
      stand_in::BatchOpIssuePreHookArgs{2, true},
      stand_in::FinalizePreHookArgs{}};
};

/// The sizes of tensors, one after another: "3 | 5 6".
std::string sizes_of(const ArgumentsView& view) {
  std::string text;
  const auto add = [&](collective::Tensors tensors) {
    for (const collective::Tensor& tensor : tensors) {
      if (!text.empty() && text.back() != ' ') text += ' ';
      for (const std::int64_t size : tensor.sizes) text += std::to_string(size);
    }
  };
  add(view.input);
  text += " | ";
  add(view.output);
  return text;
}

TEST_F(TorchcommsArgumentsTest, EachOperationIsOursWithItsFields) {
  const std::vector<std::string> sizes{
      "3 | ",     " | 3",     "3 | 3",  "3 | 3",  "3 | 3",  "3 | 5 6",   "3 | 5 6", "3 | 24",
      "5 6 | 24", "5 6 | 24", "3 | 24", "3 | 24", "3 | 24", "5 6 | 5 6", " | ",     "5 6 | 24",
      "3 | 5 6",  "3 | 24",   " | ",    " | ",    " | ",    " | "};
  const std::vector<int> peers{3,  2,  5,  -1, 6, -1, -1, -1, -1, -1, -1,
                               -1, -1, -1, -1, 7, 8,  9,  -1, -1, -1, -1};
  ASSERT_EQ(all_.size(), collective::kOpNames);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const ArgumentsOf ours(all_[i]);
    const OpName name = op_name(ours.arguments);
    SCOPED_TRACE(to_string(name));
    EXPECT_EQ(name, static_cast<OpName>(i));
    const ArgumentsView view = view_of(ours.arguments);
    EXPECT_EQ(sizes_of(view), sizes[i]);
    EXPECT_EQ(view.peer, peers[i]);
    EXPECT_EQ(view.async_op, name != OpName::recv && !view.lifecycle);
    if (view.reduces) {
      EXPECT_EQ(view.reduce, collective::ReduceOp::max);
    }
  }
  const ArgumentsOf v(all_[12]);
  const auto& exchanged = std::get<collective::AllToAllVSingle>(v.arguments);
  EXPECT_EQ(exchanged.input_split_sizes[0], 1u);
  EXPECT_EQ(exchanged.output_split_sizes[0], 2u);
  const ArgumentsOf s(all_[18]);
  EXPECT_EQ(std::get<collective::Split>(s.arguments).name, "half");
  EXPECT_EQ(std::get<collective::Split>(s.arguments).ranks[1], 2);
  const ArgumentsOf b(all_[20]);
  EXPECT_EQ(std::get<collective::BatchOpIssue>(b.arguments).num_ops, 2u);
}

TEST_F(TorchcommsArgumentsTest, EachOperationOfOursIsTheirsAgain) {
  for (const stand_in::PreHookArgs& theirs : all_) {
    const ArgumentsOf ours(theirs);
    SCOPED_TRACE(to_string(op_name(ours.arguments)));
    const Shown shown(ours.arguments, MakeSized());
    ASSERT_TRUE(shown.shown);
    EXPECT_EQ(shown.shown->index(), theirs.index());
    const ArgumentsOf again(*shown.shown);
    const ArgumentsView first = view_of(ours.arguments), second = view_of(again.arguments);
    EXPECT_EQ(sizes_of(second), sizes_of(first));
    EXPECT_EQ(second.peer, first.peer);
    EXPECT_EQ(second.reduce, first.reduce);
    EXPECT_EQ(second.async_op, first.async_op);
  }
  const ArgumentsOf ours(all_[12]);
  const Shown shown(ours.arguments, MakeSized());
  const auto& exchanged = std::get<stand_in::AllToAllVSinglePreHookArgs>(*shown.shown);
  EXPECT_EQ(exchanged.input_split_sizes, give_);
  EXPECT_EQ(exchanged.output_split_sizes, get_);
  const ArgumentsOf split(all_[18]);
  const Shown parts(split.arguments, MakeSized());
  EXPECT_EQ(std::get<stand_in::SplitPreHookArgs>(*parts.shown).name, "half");
  EXPECT_EQ(std::get<stand_in::SplitPreHookArgs>(*parts.shown).ranks, ranks_);
}

TEST_F(TorchcommsArgumentsTest, AnOperationOfARevisionToComeIsKnownByItsName) {
  const ArgumentsOf ours(stand_in::PreHookArgs(stand_in::WindowPutPreHookArgs{true}));
  EXPECT_EQ(std::get<collective::Other>(ours.arguments).op, "window_put");
  EXPECT_TRUE(std::get<collective::Other>(ours.arguments).async_op);
  EXPECT_FALSE(Shown(ours.arguments, MakeSized()).shown);
}

TEST_F(TorchcommsArgumentsTest, ATensorIsShownAsFarAsItCanBe) {
  const collective::Tensor shown = tensor_of(two_);
  EXPECT_EQ(shown.object, &two_);
  EXPECT_EQ(shown.data, two_.const_data_ptr());
  EXPECT_EQ(shown.elements(), 8u);
  EXPECT_EQ(shown.bytes, 32u);
  EXPECT_EQ(shown.dtype.view(), "float32");
  EXPECT_EQ(shown.device, collective::kNoDevice);
  two_.meta = true;
  EXPECT_EQ(tensor_of(two_).data, nullptr);
  EXPECT_EQ(tensor_of(two_).elements(), 8u);
  EXPECT_EQ(tensor_of(Tensor({1}, stand_in::ScalarType::Long)).dtype.view(), "int64");
  EXPECT_EQ(tensor_of(Tensor({1}, stand_in::ScalarType::Float4)).dtype.view(), "Float4");
}

TEST_F(TorchcommsArgumentsTest, EachReductionIsOursAndTheirsAgain) {
  const std::vector<Red> theirs{Red::SUM,  Red::AVG, Red::PRODUCT, Red::MIN,       Red::MAX,
                                Red::BAND, Red::BOR, Red::BXOR,    Red::PREMUL_SUM};
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const auto ours = static_cast<collective::ReduceOp>(i);
    SCOPED_TRACE(to_string(ours));
    EXPECT_EQ(reduce_op_of(stand_in::ReduceOp(theirs[i])), ours);
    const collective::Arguments arguments = collective::AllReduce{tensor_of(one_), ours};
    if (ours == collective::ReduceOp::premul_sum) {  // its factor is not ours to give
      EXPECT_THROW(Shown(arguments, MakeSized()), std::invalid_argument);
      continue;
    }
    const Shown shown(arguments, MakeSized());
    EXPECT_EQ(std::get<stand_in::AllReducePreHookArgs>(*shown.shown).op.type(), theirs[i]);
  }
}

}  // namespace
}  // namespace ringmain::tests
