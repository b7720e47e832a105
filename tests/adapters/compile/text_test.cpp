// Is everything found in PyTorch's texts, and nothing in other texts?
#include "adapters/sources/compile/dynamo/text.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::compile {
namespace {

TEST(DynamoTextTest, AGraphHasItsInputsAndItsCalls) {
  const GraphText plain = read_graph(
      "class GraphModule(torch.nn.Module):\n"
      "    def forward(self, L_x_: \"f32[3][1]cpu\", L_y_: \"f32[3, 4][1]cpu\"):\n"
      "        l_x_ = L_x_\n"
      "        l_y_ = L_y_\n\n"
      "        # File: m.py:49 in poly, code: def poly(x): return x * x + 3 * x\n"
      "        mul: \"f32[3][1]cpu\" = l_x_ * l_x_\n"
      "        weight = self.linear.weight\n"
      "        out = torch._C._nn.linear(mul, weight);  l_x_ = None\n"
      "        return (out,)\n"
      "    class inner(torch.nn.Module):\n"
      "        def forward(self, a):\n            b = a + 1\n");
  EXPECT_EQ(plain.inputs, 2);
  EXPECT_EQ(plain.ops, 2);
  const GraphText lines = read_graph(
      "    def forward(\n        self,\n        a: \"Sym(s77)\",  # Plain, AOTInput(idx=0)\n"
      "        b: \"f32[s77][1]cpu\",  # it's\n    ):\n        mul = a * b\n        return mul\n");
  EXPECT_EQ(lines.inputs, 2);
  EXPECT_EQ(lines.ops, 1);
  EXPECT_EQ(read_graph("").inputs, -1);
  EXPECT_EQ(read_graph("def forward(self, a").inputs, -1);
  EXPECT_EQ(read_graph("def forward(self):").inputs, 0);
}

TEST(DynamoTextTest, GuardsAreTheLeavesOfTheirTree) {
  const GuardsText read = read_guards(
      "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n"
      "| +- LAMBDA_GUARD: x == None  # +- NOT_ONE: y\n| +- GLOBAL_STATE: ___check\n"
      "| +- GuardManager: source=L['x']\n| | +- TENSOR_MATCH: check_tensor(L['x'])\n"
      "+- LAMBDA_GUARD: 2 <= n\n\nGuard latency = 43.29 us\n");
  EXPECT_EQ(read.count, 4u);
  EXPECT_EQ(read.check_ns, 43290);
  EXPECT_EQ(read_guards("Guard latency = nan us").check_ns, 0);
  EXPECT_EQ(read_guards("Guard latency = 1e300 us").check_ns, 0);
}

TEST(DynamoTextTest, ReasonsGiveTheCacheEntryAndTheCondition) {
  const ReasonText read = read_reason("12/3: tensor 'x' size mismatch at index 0: 3, 5\nUser");
  EXPECT_EQ(read.frame, 12);
  EXPECT_EQ(read.recompile, 3);
  EXPECT_EQ(read.condition, "tensor 'x' size mismatch at index 0: 3, 5");
  EXPECT_EQ(read_reason("k == 2: 3/4").frame, -1);
  EXPECT_EQ(read_reason("k == 2: 3/4").condition, "k == 2: 3/4");
  EXPECT_EQ(read_reason("1/: x").frame, -1);
  EXPECT_EQ(read_reason("").condition, "");
}

TEST(DynamoTextTest, ResumeFunctionsNameWhatTheyGoOnWith) {
  EXPECT_EQ(read_resume("torch_dynamo_resume_in_forward_at_40").function, "forward");
  EXPECT_EQ(read_resume("torch_dynamo_resume_in_forward_at_40").line, 40u);
  EXPECT_EQ(read_resume("torch_dynamo_resume_in_look_at_me_at_7").function, "look_at_me");
  EXPECT_EQ(read_resume("torch_dynamo_resume_in__at_7").function, "");
  for (const char* const name :
       {"", "forward", "torch_dynamo_resume_in_", "torch_dynamo_resume_in_f",
        "torch_dynamo_resume_in_f_at_", "torch_dynamo_resume_in_f_at_x",
        "torch_dynamo_resume_in_f_at_99999999999"}) {
    EXPECT_EQ(read_resume(name).function, "") << name;
  }
}

TEST(DynamoTextTest, LimitsAreToldFromOtherFailures) {
  EXPECT_TRUE(read_limit("Dynamo recompile limit exceeded\n (currently set to 3)").is);
  EXPECT_EQ(read_limit("Dynamo recompile limit exceeded\n (currently set to 3)").limit, 3u);
  EXPECT_TRUE(
      read_limit("hit recompile_limit\nLimit type: accumulated_recompile_limit").accumulated);
  EXPECT_FALSE(read_limit("no\n  Hint: see recompile_limit").is);
}

TEST(DynamoTextTest, NoBytesAreReadOutsideOfATextThatIsCutOrDamaged) {
  const std::string whole =
      "Graph break in user code at /m.py:40\nGraph Break Reason: Encountered graph break when "
      "attempting to trace CALL:\n\nCall\n visit /gb/gb0025.html\n\nUser code traceback:\n"
      "12/3: k == 2  # x\n+- LAMBDA_GUARD: y\nGuard latency = 4.2 us\n def forward(self, a: "
      "\"x\"):\n"
      "  b: \"f\" = a + 1; c = None\n return\n recompile_limit currently set to 3";
  std::mt19937 random(11);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    for (int round = 0; round < 8; ++round) {
      const std::string part = whole.substr(cut, random() % 200);
      std::string text(part.c_str(), part.size());
      text.shrink_to_fit();
      if (!text.empty() && round > 0)
        text[random() % text.size()] ^= static_cast<char>(1u << (random() % 8));
      (void)read_break(text);
      (void)read_reason(text);
      (void)read_graph(text);
      (void)read_guards(text);
      (void)read_limit(text);
      (void)read_resume(text);
    }
  }
}

}  // namespace
}  // namespace ringmain::compile
