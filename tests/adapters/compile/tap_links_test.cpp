// Is a graph break joined with the frame after it, and a callback with the trace of its compile?
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/adapters/compile/tap_rig.hpp"

namespace ringmain::compile {
namespace {

const std::string kBreak =
    "Graph break in user code at /src/m.py:40\n"
    "Graph Break Reason: Encountered graph break when attempting to trace CALL: f(x, y):\n\n"
    "Call to `torch._dynamo.graph_break()`\n  Explanation: User-inserted graph break.\n\n"
    " For more details, please visit: https://example.org/gb/gb0025.html\n\n"
    "User code traceback:\n  File \"/src/m.py\", line 40, in forward\n";

struct LinkRig : TapRig {
  LinkRig() { say("str", R"(["/src/m.py", 1])", ""); }
};

TEST(TapLinksTest, ABreakSaysWhyAndWhereAndWhichFrameGoesOn) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), kBreak);
  rig.end(at(0, 0, 1));
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  ASSERT_EQ(rig.breaks.size(), 2u);
  const GraphBreak& broke = rig.breaks[0];
  EXPECT_EQ(broke.what, GraphBreak::What::broke);
  EXPECT_EQ(broke.reason.view(), "Call to `torch._dynamo.graph_break()`");
  EXPECT_TRUE(broke.explained.view().starts_with("Call to"));
  EXPECT_TRUE(broke.explained.view().ends_with("gb0025.html"));
  EXPECT_EQ(broke.code.view(), "gb0025");
  EXPECT_EQ(broke.file.view(), "/src/m.py");
  EXPECT_EQ(broke.line, 40u);
  EXPECT_EQ(broke.function.view(), "forward");
  EXPECT_EQ(broke.resume_frame, -1);
  const GraphBreak& resumed = rig.breaks[1];
  EXPECT_EQ(resumed.what, GraphBreak::What::resumed);
  EXPECT_EQ(resumed.number, broke.number);
  EXPECT_EQ(resumed.frame, 0);
  EXPECT_EQ(resumed.resume_frame, 1);
  EXPECT_EQ(resumed.resume_recompile, 0);
  EXPECT_EQ(rig.starts[1].resumes_break, broke.number);
  EXPECT_EQ(rig.starts[0].resumes_break, 0u);
}

TEST(TapLinksTest, ASecondBreakInTheRestIsItsOwnLink) {
  LinkRig rig;
  std::string second = kBreak;
  second.replace(second.find("m.py:40"), 7, "m.py:50");
  second.replace(second.find("line 40"), 7, "line 50");
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), kBreak);
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  rig.artifact("dynamo_graph_break_reason", at(1, 0), second);
  rig.begin(at(2, 0), "torch_dynamo_resume_in_forward_at_50", 1, 50);
  rig.begin(at(2, 1), "torch_dynamo_resume_in_forward_at_50", 1, 50);  // compiled again: no break
  ASSERT_EQ(rig.breaks.size(), 4u);
  EXPECT_EQ(rig.starts[1].resumes_break, 1u);
  EXPECT_EQ(rig.starts[2].resumes_break, 2u);
  EXPECT_EQ(rig.breaks[3].frame, 1);
  EXPECT_EQ(rig.breaks[3].resume_frame, 2);
  EXPECT_EQ(rig.starts[3].resumes_break, 0u);
}

TEST(TapLinksTest, ABranchMayGoOnInTwoFrames) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), kBreak);
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  rig.begin(at(2, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  rig.begin(at(2, 1), "torch_dynamo_resume_in_forward_at_40", 1, 40);  // compiled again
  ASSERT_EQ(rig.breaks.size(), 3u);
  EXPECT_EQ(rig.breaks[1].resume_frame, 1);
  EXPECT_EQ(rig.breaks[2].resume_frame, 2);
  EXPECT_EQ(rig.breaks[2].number, rig.breaks[0].number);
  EXPECT_EQ(rig.starts[2].resumes_break, rig.breaks[0].number);
  EXPECT_EQ(rig.starts[3].resumes_break, 0u);
}

TEST(TapLinksTest, ABreakBeforeAResetIsNotResumedAfterIt) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), kBreak);
  rig.tap.reset();
  rig.begin(at(0, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  EXPECT_EQ(rig.breaks.size(), 1u);
}

/// A break at `line` of the frame, which the frame's caller called at line 9.
std::string break_at(int line) {
  const std::string at = std::to_string(line);
  return "Graph break in user code at /src/m.py:" + at +
         "\nGraph Break Reason: Call to `torch._dynamo.graph_break()`\n\n"
         "User code traceback:\n  File \"/src/m.py\", line 9, in <module>\n    model(x)\n"
         "  File \"/src/m.py\", line " +
         at + ", in forward\n    torch._dynamo.graph_break()\n";
}

TEST(TapLinksTest, ABreakInACompileThatFailedIsNeverResumed) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), kBreak);
  rig.end(at(0, 0), R"("fail_type": "BackendCompilerFailed")");
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);  // of a like-named function
  rig.begin(at(1, 1), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  ASSERT_EQ(rig.breaks.size(), 1u);
  EXPECT_EQ(rig.starts[1].resumes_break, 0u);
  EXPECT_EQ(rig.starts[2].resumes_break, 0u);
}

TEST(TapLinksTest, ARestAtAnotherLineIsAnotherFunctions) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), break_at(40));  // its rest is never called
  rig.end(at(0, 0));
  rig.begin(at(1, 0), "forward", 1, 68);
  rig.artifact("dynamo_graph_break_reason", at(1, 0), break_at(70));
  rig.end(at(1, 0));
  rig.begin(at(2, 0), "torch_dynamo_resume_in_forward_at_70", 1, 70);
  rig.begin(at(2, 1), "torch_dynamo_resume_in_forward_at_70", 1, 70);  // compiled again: no break
  ASSERT_EQ(rig.breaks.size(), 3u);
  EXPECT_EQ(rig.starts[2].resumes_break, 2u);
  EXPECT_EQ(rig.starts[3].resumes_break, 0u);
}

TEST(TapLinksTest, ABreakInACalledFunctionGoesOnAtTheFramesOwnLine) {
  LinkRig rig;
  std::string inner = break_at(40);
  inner += "  File \"/src/m.py\", line 12, in helper\n    torch._dynamo.graph_break()\n";
  inner.replace(inner.find("m.py:40"), 7, "m.py:12");
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), inner);
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_40", 1, 40);
  EXPECT_EQ(rig.starts[1].resumes_break, 1u);
}

TEST(TapLinksTest, ABreakInACalledFunctionOfTheSameNameGoesOnAtAnotherLine) {
  LinkRig rig;
  rig.begin(at(0, 0), "forward", 1, 20);
  rig.artifact("dynamo_graph_break_reason", at(0, 0), break_at(40));  // says nothing of line 23
  rig.begin(at(1, 0), "torch_dynamo_resume_in_forward_at_23", 1, 23);
  EXPECT_EQ(rig.starts[1].resumes_break, 1u);
}

TEST(TapLinksTest, CallbackAndTraceAreOneStartAndOneEnd) {
  TapRig rig;
  rig.begin(at(0, 0), "forward");  // PyTorch's order
  EXPECT_EQ(rig.tap.started(Trigger::dynamo, "0/0"), PublishCode::accepted);
  rig.tap.ended(Trigger::dynamo, "0/0");
  rig.bus.deliver();
  EXPECT_TRUE(rig.ends.empty());  // the trace will say how it went
  rig.end(at(0, 0), R"("fail_type": "Unsupported")");
  EXPECT_EQ(rig.starts.size(), 1u);
  ASSERT_EQ(rig.ends.size(), 1u);
  EXPECT_EQ(rig.ends[0].outcome, Outcome::failed);
}

TEST(TapLinksTest, CallbacksAloneGiveOutermostPairs) {
  TapRig rig;
  (void)rig.tap.started(Trigger::lazy_backward, "1/0");
  rig.tap.ended(Trigger::lazy_backward, "1/0");
  (void)rig.tap.started(Trigger::dynamo, "0/0");
  rig.tap.ended(Trigger::dynamo, "1/0");  // the last to leave is another one
  (void)rig.tap.started(Trigger::cudagraph_recording, "None");
  rig.tap.ended(Trigger::cudagraph_recording, "None");
  rig.bus.deliver();
  ASSERT_EQ(rig.starts.size(), 3u);
  ASSERT_EQ(rig.ends.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.starts[i].span, rig.ends[i].span);
    EXPECT_EQ(rig.ends[i].outcome, Outcome::unknown);
    EXPECT_TRUE(rig.starts[i].outermost && rig.ends[i].outermost);
  }
  EXPECT_EQ(rig.starts[0].trigger, Trigger::lazy_backward);
  EXPECT_EQ(rig.starts[2].frame, -1);
  EXPECT_EQ(rig.starts[2].text.view(), "None");
}

TEST(TapLinksTest, AVetoReachesTheCallbackAndLeavesACancelledEnd) {
  TapRig rig;
  const Name why("no compiles while serving");
  auto veto =
      rig.bus.channel<Start>().subscribe_inline([why](const Start&) { return Verdict::veto(why); });
  rig.begin(at(0, 0));
  const PublishResult verdict = rig.tap.started(Trigger::dynamo, "0/0");
  EXPECT_EQ(verdict, PublishCode::vetoed);
  EXPECT_EQ(verdict.why, why);
  rig.tap.ended(Trigger::dynamo, "0/0");
  rig.end(at(0, 0), R"("fail_type": "InternalTorchDynamoError")");
  (void)rig.tap.started(Trigger::lazy_backward, "0/0");  // and without a trace
  rig.tap.ended(Trigger::lazy_backward, "0/0");
  rig.bus.deliver();
  EXPECT_TRUE(rig.starts.empty());
  ASSERT_EQ(rig.ends.size(), 2u);
  for (const End& end : rig.ends) {
    EXPECT_EQ(end.outcome, Outcome::cancelled);
    EXPECT_EQ(end.reason, why);
  }
}

TEST(TapLinksTest, AnInlineSubscriberMayCauseRecords) {
  TapRig rig;
  int depth = 0;
  auto nested = rig.bus.channel<Start>().subscribe_inline([&](const Start& start) {
    if (start.frame == 0 && depth++ == 0)
      rig.tap.record("{\"dynamo_start\": {}, " + at(1, 0) + "}", "");
  });
  rig.begin(at(0, 0));
  EXPECT_EQ(rig.starts.size(), 2u);
}

TEST(TapLinksTest, AForkedChildSaysNothingAndWaitsForNobody) {
  TapRig rig;
  pid_t child = -1;
  // The record is on its way in this thread while the process forks.
  auto forking = rig.bus.channel<Start>().subscribe_inline([&](const Start&) {
    if (child >= 0) return;
    child = ::fork();
    if (child != 0) return;
    rig.tap.record("{\"dynamo_start\": {}, " + at(7, 0) + "}", "");
    const bool told = rig.tap.started(Trigger::dynamo, "7/0") == PublishCode::forked;
    rig.tap.ended(Trigger::dynamo, "7/0");
    rig.tap.finish();
    ::_exit(told && rig.tap.counts().read == 0 && rig.tap.kinds().empty() ? 0 : 1);
  });
  rig.begin(at(0, 0));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rig.starts.size(), 1u);
}

TEST(TapLinksTest, GuardHooksSayHitsAndMisses) {
  TapRig rig;
  rig.tap.guard_checked(true);
  rig.tap.guard_checked(false);
  rig.bus.deliver();
  ASSERT_EQ(rig.guards.size(), 2u);
  EXPECT_EQ(rig.guards[0].what, Guard::What::hit);
  EXPECT_EQ(rig.guards[1].what, Guard::What::miss);
}

TEST(TapLinksTest, OpenCompilesAreBoundedAndTheOldestEndsUnknown) {
  TapRig rig;
  for (int frame = 0; frame < 300; ++frame) rig.begin(at(frame, 0));
  EXPECT_EQ(rig.starts.size(), 300u);
  EXPECT_EQ(rig.ends.size(), 44u);
  EXPECT_EQ(rig.ends[0].outcome, Outcome::unknown);
  rig.tap.finish();
  rig.bus.deliver();
  EXPECT_EQ(rig.ends.size(), 300u);
  EXPECT_TRUE(rig.ends.events().back().outermost);
}

}  // namespace
}  // namespace ringmain::compile
