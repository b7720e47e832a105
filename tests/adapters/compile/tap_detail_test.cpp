// Is what a reader needs said at length: whole stacks, each guard, code, and torch.compile()'s
// arguments?
#include <string>

#include <gtest/gtest.h>

#include "adapters/sources/compile/dynamo/text.hpp"

#include "tests/adapters/compile/tap_rig.hpp"

namespace ringmain::compile {
namespace {

TEST(TapDetailTest, AStartHasTheWholeStackOfItsCall) {
  TapRig rig;
  rig.say("str", R"(["/src/m.py", 1])", "");
  rig.say("dynamo_start",
          R"({"stack": [{"line": 9, "name": "<module>", "filename": 1, "loc": "y = model @ x"}, )"
          R"({"line": 38, "name": "forward", "filename": 1}]})",
          at(0, 0));
  ASSERT_EQ(rig.stacks.size(), 2u);
  const StackFrame& outer = rig.stacks[0];
  EXPECT_EQ(outer.of, StackFrame::Of::start);
  EXPECT_EQ(outer.number, rig.starts[0].span);
  EXPECT_EQ(outer.index, 0u);
  EXPECT_EQ(outer.count, 2u);
  EXPECT_EQ(outer.function.view(), "<module>");
  EXPECT_EQ(outer.file.view(), "/src/m.py");
  EXPECT_EQ(outer.line, 9u);
  EXPECT_EQ(outer.code.view(), "y = model @ x");
  EXPECT_EQ(rig.stacks[1].function.view(), "forward");
  EXPECT_EQ(rig.stacks[1].index, 1u);
}

TEST(TapDetailTest, ABreakHasTheStackOfTheCodeThatBrokeTheGraph) {
  TapRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.stacks.clear();
  rig.artifact("dynamo_graph_break_reason", at(0, 0),
               "Graph break in user code at /src/m.py:12\nGraph Break Reason: Call to print()\n"
               "  Hint: do not\n\nUser code traceback:\n"
               "  File \"/src/m.py\", line 40, in forward\n    helper(x)\n    ^^^^^^\n"
               "  File \"/src/m, line 3, in x.py\", line 12, in helper\n    print(\"in a call\")\n"
               "\nTraceback (most recent call last):\n  File \"/torch.py\", line 1, in _compile\n");
  ASSERT_EQ(rig.stacks.size(), 2u);
  EXPECT_EQ(rig.stacks[0].of, StackFrame::Of::graph_break);
  EXPECT_EQ(rig.stacks[0].number, rig.breaks[0].number);
  EXPECT_EQ(rig.stacks[0].line, 40u);
  EXPECT_EQ(rig.stacks[1].function.view(), "helper");
  EXPECT_EQ(rig.stacks[1].file.view(), "/src/m, line 3, in x.py");
  EXPECT_EQ(rig.stacks[1].code.view(), "print(\"in a call\")");
}

TEST(TapDetailTest, ARecompileSaysWhereAndEachReasonSaysWhoAskedForIt) {
  TapRig rig;
  rig.say("str", R"(["/src/m.py", 1])", "");
  rig.begin(at(6, 0), "powered", 1, 67);
  rig.end(at(6, 0));
  rig.stacks.clear();
  rig.artifact("recompile_reasons", at(6, 1),
               "6/0: k == 2       # def powered(x, k): return x ** k  # s/m.py:67 in powered\n"
               "User stack trace:\n  File \"/src/m.py\", line 68, in powered\n    return x ** k");
  rig.artifact("recompile_reasons", at(6, 2),
               R"(["6/1: k == 3   # x ** k  # s/m.py:67 in powered", "6/0: k"])");
  ASSERT_EQ(rig.recompiles.size(), 2u);
  EXPECT_EQ(rig.recompiles[0].function.view(), "powered");
  EXPECT_EQ(rig.recompiles[0].file.view(), "/src/m.py");
  EXPECT_EQ(rig.recompiles[0].line, 67u);
  ASSERT_EQ(rig.guards.size(), 3u);
  EXPECT_EQ(rig.guards[0].text.view(), "k == 2");
  EXPECT_EQ(rig.guards[0].file.view(), "/src/m.py");  // the stack's, which is whole
  EXPECT_EQ(rig.guards[0].line, 68u);
  EXPECT_EQ(rig.guards[0].function.view(), "powered");
  EXPECT_EQ(rig.guards[1].file.view(), "s/m.py");
  EXPECT_EQ(rig.guards[1].line, 67u);
  EXPECT_EQ(rig.guards[2].file.view(), "");
  ASSERT_EQ(rig.stacks.size(), 1u);
  EXPECT_EQ(rig.stacks[0].of, StackFrame::Of::guard);
  EXPECT_EQ(rig.stacks[0].code.view(), "return x ** k");
}

const std::string kTree =
    "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n"
    "| +- DEFAULT_DEVICE: CURRENT == None    # _dynamo/output_graph.py:1122 in "
    "init_ambient_guards\n"
    "| +- GuardManager: source=L['x'], accessed_by=FrameLocals(key='x'), type=<class 'Tensor'>\n"
    "| | +- TENSOR_MATCH: check_tensor(L['x'], size=[4, 8])  # return x + 1  # m.py:44 in forward\n"
    "| +- GuardManager: source=L['self'], accessed_by=A\n"
    "| | +- GuardManager: source=L['self'].up, accessed_by=B\n"
    "| | | +- TYPE_MATCH: ___check_type_id(L['self'].up, 99)\n"
    "+- LAMBDA_GUARD: 2 <= n\n\nGuard latency = 43.29 us\n";

TEST(TapDetailTest, EachGuardHasKindSourceAndPlace) {
  TapRig rig;
  rig.say("dynamo_cpp_guards_str", "{}", at(0, 0), kTree);
  ASSERT_EQ(rig.guards.size(), 1u);
  ASSERT_EQ(rig.installed.size(), rig.guards[0].count);
  ASSERT_EQ(rig.installed.size(), 4u);
  EXPECT_EQ(rig.installed[0].kind.view(), "DEFAULT_DEVICE");
  EXPECT_EQ(rig.installed[0].source.view(), "");
  EXPECT_EQ(rig.installed[0].check.view(), "CURRENT == None");
  EXPECT_EQ(rig.installed[0].line, 1122u);
  const InstalledGuard& tensor = rig.installed[1];
  EXPECT_EQ(tensor.index, 1u);
  EXPECT_EQ(tensor.source.view(), "L['x']");
  EXPECT_EQ(tensor.check.view(), "check_tensor(L['x'], size=[4, 8])");
  EXPECT_EQ(tensor.file.view(), "m.py");
  EXPECT_EQ(tensor.line, 44u);
  EXPECT_EQ(tensor.function.view(), "forward");
  EXPECT_EQ(tensor.code.view(), "return x + 1");
  EXPECT_EQ(rig.installed[2].source.view(), "L['self'].up");
  EXPECT_EQ(rig.installed[2].kind.view(), "TYPE_MATCH");
  EXPECT_EQ(rig.installed[3].source.view(), "");
}

TEST(TapDetailTest, CodeComesWholeInParts) {
  TapRig rig;
  std::string graph = "def forward(self, x):\n";
  while (graph.size() < 3000) graph += "    äöü = torch.sin(x)  # a line of some length\n";
  graph += std::string(2000, 'y');  // a line that no part holds
  rig.say("dynamo_output_graph", "{}", at(0, 0), graph);
  std::string whole;
  for (std::size_t i = 0; i < rig.codes.size(); ++i) {
    EXPECT_EQ(rig.codes[i].part, i);
    EXPECT_EQ(rig.codes[i].parts, rig.codes.size());
    EXPECT_FALSE(rig.codes[i].text.cut());
    whole += rig.codes[i].text.view();
  }
  EXPECT_EQ(whole, graph);
  EXPECT_EQ(rig.codes[0].bytes, graph.size());
  EXPECT_EQ(rig.codes[0].what, Code::What::graph);
}

TEST(TapDetailTest, BytecodeHasItsSize) {
  TapRig rig;
  rig.artifact("f_ORIGINAL_BYTECODE", at(0, 0),
               " 40           0 RESUME                   0\n              2 LOAD_CONST   1 (True)\n"
               "        >>  116 POP_TOP\n\n 41         118 LOAD_FAST                3 (self)\n");
  rig.artifact("f_MODIFIED_BYTECODE", at(0, 0), "nothing of the kind");
  ASSERT_EQ(rig.codes.size(), 2u);
  EXPECT_EQ(rig.codes[0].what, Code::What::original);
  EXPECT_EQ(rig.codes[0].function.view(), "f");
  EXPECT_EQ(rig.codes[0].instructions, 4u);
  EXPECT_EQ(rig.codes[0].bytecode, 120);
  EXPECT_EQ(rig.codes[1].what, Code::What::modified);
  EXPECT_EQ(rig.codes[1].bytecode, -1);
}

TEST(TapDetailTest, TheArgumentsOfCompileAreSaidAndTheBackendHasAName) {
  TapRig rig;
  rig.say(
      "dynamo_start",
      R"({"stack": [], "ringmain": {"backend": "aot_eager", "dynamic": "on", "fullgraph": "yes"}})",
      at(0, 0));
  rig.event('B', "backend_compile", at(0, 0), 100);
  rig.event('E', "backend_compile", at(0, 0), 200);
  rig.end(
      at(0, 0),
      R"("dynamo_config": "{\"assume_static_by_default\": true, \"automatic_dynamic_shapes\": false}")");
  rig.begin(at(1, 0));
  ASSERT_EQ(rig.starts.size(), 2u);
  EXPECT_EQ(rig.starts[0].backend.view(), "aot_eager");
  EXPECT_EQ(rig.starts[0].dynamic, Dynamic::on);
  EXPECT_EQ(rig.starts[0].fullgraph, Answer::yes);
  EXPECT_EQ(rig.starts[1].dynamic, Dynamic::unknown);
  ASSERT_EQ(rig.backends.size(), 2u);
  EXPECT_EQ(rig.backends[1].name.view(), "aot_eager");
  EXPECT_EQ(rig.metrics[0].dynamic, Dynamic::off);
}

TEST(TapDetailTest, WhatNobodyWantsIsNotSaid) {
  TestBus bus;
  TraceTap tap(bus);
  tap.record("{\"dynamo_cpp_guards_str\": {}, " + at(0, 0) + "}", kTree);
  tap.record("{\"dynamo_output_graph\": {}, " + at(0, 0) + "}",
             "def forward(self):\n    return 1\n");
  EXPECT_EQ(tap.counts().events, 2u);  // the count of the guards, and the graph
}

}  // namespace
}  // namespace ringmain::compile
