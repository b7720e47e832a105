// Do PyTorch's records become the events that happened?
#include <gtest/gtest.h>

#include "tests/adapters/compile/tap_rig.hpp"

namespace ringmain::compile {
namespace {

using TapTest = testing::Test;

TEST(TapTest, ACompileIsOneSpanFromItsStartToItsMetrics) {
  TapRig rig;
  rig.say("str", R"(["/src/train.py", 1])", "");
  rig.begin(at(0, 0), "forward", 1, 38);
  rig.end(at(0, 0, 1), R"("duration_us": 639, "fail_type": null, "co_name": "forward",
      "guard_count": 34, "graph_op_count": 1, "restart_reasons": ["x"])");
  ASSERT_EQ(rig.starts.size(), 1u);
  ASSERT_EQ(rig.ends.size(), 1u);
  const Start& start = rig.starts[0];
  const End& end = rig.ends[0];
  EXPECT_EQ(start.frame, 0);
  EXPECT_EQ(start.trigger, Trigger::dynamo);
  EXPECT_EQ(start.function.view(), "forward");
  EXPECT_EQ(start.file.view(), "/src/train.py");
  EXPECT_EQ(start.line, 38u);
  EXPECT_EQ(start.text.view(), "0/0");
  EXPECT_TRUE(start.outermost && end.outermost);
  EXPECT_NE(start.span, 0u);
  EXPECT_EQ(end.span, start.span);
  EXPECT_EQ(end.outcome, Outcome::completed);
  EXPECT_EQ(end.took_ns, 639'000);
  EXPECT_EQ(end.attempt, 1u);
  ASSERT_EQ(rig.metrics.size(), 1u);
  EXPECT_EQ(rig.metrics[0].guards, 34);
  EXPECT_EQ(rig.metrics[0].graph_nodes, -1);
  EXPECT_EQ(rig.metrics[0].restarts, 1u);
}

TEST(TapTest, AFailureEndsItsCompileWithItsTypeAndItsWords) {
  TapRig rig;
  rig.begin(at(4, 0));
  rig.artifact("dynamo_error", at(4, 0), "Traceback …");
  rig.end(at(4, 0),
          R"("fail_type": "BackendCompilerFailed", "fail_reason": "no", "duration_us": 1)");
  rig.begin(at(4, 1));  // a second try is no recompile
  rig.end(at(4, 1),
          R"("fail_type": "BackendCompilerFailed", "fail_reason": "no", "duration_us": 1)");
  ASSERT_EQ(rig.ends.size(), 2u);
  EXPECT_EQ(rig.ends[1].outcome, Outcome::failed);
  EXPECT_EQ(rig.ends[1].exception.view(), "BackendCompilerFailed");
  EXPECT_EQ(rig.ends[1].reason.view(), "no");
  EXPECT_TRUE(rig.recompiles.empty());
}

TEST(TapTest, NestedCompilesAreSpansOfTheirOwnWithinOneOutermostPair) {
  TapRig rig;
  rig.begin(at(0, 0));
  rig.begin(at(1, 0));
  rig.end(at(0, 0));  // the outer one ends first, as concurrent ones may
  rig.end(at(1, 0));
  ASSERT_EQ(rig.starts.size(), 2u);
  ASSERT_EQ(rig.ends.size(), 2u);
  EXPECT_TRUE(rig.starts[0].outermost);
  EXPECT_FALSE(rig.starts[1].outermost);
  EXPECT_EQ(rig.starts[1].depth, 1u);
  EXPECT_FALSE(rig.ends[0].outermost);
  EXPECT_TRUE(rig.ends[1].outermost);
  EXPECT_EQ(rig.ends[0].span, rig.starts[0].span);
  EXPECT_NE(rig.ends[1].span, rig.starts[0].span);
  EXPECT_EQ(rig.ends[1].pair, rig.starts[0].pair);
}

TEST(TapTest, IdsThatBeginAgainAreAnotherEpoch) {
  TapRig rig;
  rig.event('B', "dynamo", at(0, 0));
  rig.begin(at(0, 0));
  rig.end(at(0, 0));
  rig.begin(at(1, 0));
  rig.end(at(1, 0));
  EXPECT_TRUE(rig.resets.empty());
  rig.event('B', "dynamo", at(0, 0));  // said before the start
  rig.begin(at(0, 0));
  rig.end(at(0, 0));
  ASSERT_EQ(rig.resets.size(), 1u);
  EXPECT_TRUE(rig.resets[0].inferred);
  EXPECT_EQ(rig.resets[0].reset, 1u);
  EXPECT_EQ(rig.starts[2].reset, 1u);
  EXPECT_EQ(rig.ends[2].reset, 1u);
  EXPECT_EQ(rig.phases.events().back().reset, 1u);
}

TEST(TapTest, AFirstCompileOfAnEarlierFrameIsAnotherEpochToo) {
  TapRig rig;
  rig.begin(at(5, 0));
  rig.end(at(5, 0));
  rig.begin(at(5, 1));
  rig.begin(at(0, 0));
  EXPECT_EQ(rig.resets.size(), 1u);
}

TEST(TapTest, AnAnnouncedResetIsOneEpochAndNotTwo) {
  TapRig rig;
  rig.begin(at(0, 0));
  rig.end(at(0, 0));
  rig.tap.reset();
  rig.begin(at(0, 0));
  ASSERT_EQ(rig.resets.size(), 1u);
  EXPECT_FALSE(rig.resets[0].inferred);
  EXPECT_EQ(rig.starts[1].reset, 1u);
}

TEST(TapTest, TheRecompileLimitIsALimitAndNoCompile) {
  TapRig rig;
  rig.artifact("recompile_reasons", at(6, 3), "6/2: k == 4");
  rig.end(
      at(6, 3),
      R"("fail_type": "Unsupported", "fail_reason": "Dynamo recompile limit exceeded\n)"
      R"(  Explanation: the recompile_limit (currently set to 3)\n Limit type: recompile_limit")");
  EXPECT_TRUE(rig.starts.empty());
  EXPECT_TRUE(rig.ends.empty());
  ASSERT_EQ(rig.limits.size(), 1u);
  EXPECT_EQ(rig.limits[0].limit, 3u);
  EXPECT_EQ(rig.limits[0].what, Limit::What::recompile);
  EXPECT_EQ(rig.limits[0].recompile, 3);
}

TEST(TapTest, ARecompileNamesEachGuardThatFailed) {
  TapRig rig;
  rig.begin(at(6, 0));
  rig.end(at(6, 0),
          R"("dynamo_config": "{\"accumulated_recompile_limit\": 256, \"recompile_limit\": 8}")");
  rig.artifact("recompile_reasons", at(6, 1),
               "6/0: k == 2       # def f(x, k): return x ** k\nUser stack");
  rig.artifact("recompile_reasons", at(6, 2), R"(["6/1: k == 3  # f", "6/0: k == 2  # f"])");
  ASSERT_EQ(rig.recompiles.size(), 2u);
  EXPECT_EQ(rig.recompiles[0].reasons, 1u);
  EXPECT_EQ(rig.recompiles[0].reason.view(),
            "6/0: k == 2       # def f(x, k): return x ** k\nUser stack");
  EXPECT_EQ(rig.recompiles[0].limit, 8u);
  EXPECT_EQ(rig.recompiles[1].reasons, 2u);
  ASSERT_EQ(rig.guards.size(), 3u);
  EXPECT_EQ(rig.guards[0].text.view(), "k == 2");
  EXPECT_EQ(rig.guards[1].text.view(), "k == 3");
  EXPECT_EQ(rig.guards[1].what, Guard::What::failed);
  EXPECT_EQ(rig.guards[1].recompile, 2);
  EXPECT_EQ(rig.guards[1].of_recompile, 1);
}

TEST(TapTest, ABackwardIsASpanFromItsPhaseToItsMetrics) {
  TapRig rig;
  rig.begin(at(0, 0), "forward", 0, 38);
  rig.end(at(0, 0));
  rig.event('B', "entire_backward_compile", at(0, 0), 100);
  rig.event('E', "entire_backward_compile", at(0, 0), 350);
  rig.say("bwd_compilation_metrics", R"({"duration_us": null})", at(0, 0));
  ASSERT_EQ(rig.starts.size(), 2u);
  ASSERT_EQ(rig.ends.size(), 2u);
  EXPECT_EQ(rig.starts[1].trigger, Trigger::lazy_backward);
  EXPECT_EQ(rig.starts[1].function.view(), "forward");
  EXPECT_EQ(rig.starts[1].line, 38u);
  EXPECT_EQ(rig.ends[1].trigger, Trigger::lazy_backward);
  EXPECT_EQ(rig.ends[1].span, rig.starts[1].span);
  EXPECT_TRUE(rig.metrics[1].backward);
  EXPECT_TRUE(rig.resets.empty());
}

TEST(TapTest, PhasesNestAndSayHowLongTheyTook) {
  TapRig rig;
  rig.event('B', "dynamo", at(0, 0), 1795289616710407.0);
  rig.event('B', "backend_compile", at(0, 0), 1795289616710500.0,
            R"({"fn_name": "call_user_compiler", "compile_id": "0/0"})");
  rig.event('B', "lost", at(0, 0), 1795289616710600.0);
  rig.event('E', "backend_compile", at(0, 0), 1795289616710900.0);
  rig.event('E', "dynamo", at(0, 0), 1795289616711407.0);
  rig.event('E', "never_began", at(0, 0), 1795289616711408.0);
  rig.event('i', "automatic_dynamic", at(0, 0), 1795289616711409.0,
            R"({"name": "L['x']", "dim_changed": 0, "reason": "size change", "new": "5"})");
  ASSERT_EQ(rig.phases.size(), 7u);
  EXPECT_EQ(rig.phases[1].depth, 1u);
  EXPECT_EQ(rig.phases[1].what.view(), "call_user_compiler");
  EXPECT_EQ(rig.phases[3].depth, 1u);
  EXPECT_EQ(rig.phases[3].took_ns, 400'000);
  EXPECT_EQ(rig.phases[4].took_ns, 1'000'000);
  EXPECT_EQ(rig.phases[5].took_ns, 0);
  EXPECT_EQ(rig.phases[6].edge, Edge::instant);
  ASSERT_EQ(rig.backends.size(), 2u);
  EXPECT_EQ(rig.backends[1].what, Backend::What::end);
  EXPECT_EQ(rig.backends[1].took_ns, 400'000);
  ASSERT_EQ(rig.shapes.size(), 1u);
  EXPECT_EQ(rig.shapes[0].what, DynamicShape::What::automatic);
  EXPECT_EQ(rig.shapes[0].source.view(), "L['x']");
  EXPECT_EQ(rig.shapes[0].dimension, 0);
}

TEST(TapTest, CachesAndSymbolsAreSaidWithWhatPyTorchKnows) {
  TapRig rig;
  rig.say("str", R"(["/src/m.py", 7])", "");
  rig.artifact("fx_graph_cache_hit", at(0, 0),
               R"({"key": "f765a6", "time_saved_ns": 61009579, "cache_state": "hit"})");
  rig.artifact("aotautograd_cache_hit", at(0, 0), R"({"key": "as4k", "time_saved_ms": 950.0})");
  rig.artifact("fx_graph_cache_bypass", at(0, 0), R"({"cache_bypass_reason": "mutable"})");
  rig.say("create_symbol",
          R"({"symbol": "s77", "val": "5", "vr": "[2, int_oo]", "source": "L['x'].size()[0]",
              "user_stack": [{"line": 49, "name": "poly", "filename": 7}]})",
          at(2, 1));
  ASSERT_EQ(rig.caches.size(), 3u);
  EXPECT_EQ(rig.caches[0].layer, Cache::Layer::fx_graph);
  EXPECT_EQ(rig.caches[0].saved_ns, 61009579);
  EXPECT_EQ(rig.caches[0].key.view(), "f765a6");
  EXPECT_EQ(rig.caches[1].saved_ns, 950'000'000);
  EXPECT_EQ(rig.caches[2].what, Cache::What::bypass);
  EXPECT_EQ(rig.caches[2].reason.view(), "mutable");
  ASSERT_EQ(rig.shapes.size(), 1u);
  EXPECT_EQ(rig.shapes[0].symbol.view(), "s77");
  EXPECT_EQ(rig.shapes[0].file.view(), "/src/m.py");
  EXPECT_EQ(rig.shapes[0].line, 49u);
  EXPECT_EQ(rig.shapes[0].recompile, 1);
}

TEST(TapTest, WhatCannotBeReadIsCountedAndNothingIsSaid) {
  TapRig rig;
  for (const char* const metadata :
       {"", "{", "nonsense", "[]", "3", "{}", R"({"rank": 0, "frame_id": 1})", "{\"str\": 3}",
        R"({"str": ["a"]})", R"({"str": ["a", "b"]})", R"({"dynamo_start": []})",
        R"({"compilation_metrics": 7})", R"({"artifact": {"name": 3}})", "{\"a\": \"\xff\"}"}) {
    rig.tap.record(metadata, "");
  }
  rig.artifact("fx_graph_cache_hit", at(0, 0), "not json");
  rig.artifact("recompile_reasons", at(0, 0), "");
  rig.say("chromium_event", "{}", at(0, 0), "");
  rig.say("brand_new_kind", "{}", at(0, 0));
  rig.bus.deliver();
  const TraceCounts counts = rig.tap.counts();
  EXPECT_EQ(counts.read, 18u);
  EXPECT_EQ(counts.passed, 1u);
  EXPECT_EQ(counts.mapped, 0u);
  EXPECT_EQ(counts.skipped_total(), 17u);
  EXPECT_EQ(counts.events, 0u);
  EXPECT_EQ(rig.bus.queued(), 0u);
}

TEST(TapTest, WhatItWantsIsWhatItReads) {
  using Want = TraceTap::Want;
  EXPECT_EQ(TraceTap::wants("dynamo_start"), Want::metadata);
  EXPECT_EQ(TraceTap::wants("dynamo_output_graph"), Want::payload);
  EXPECT_EQ(TraceTap::wants("inductor_output_code"), Want::nothing);
  EXPECT_EQ(TraceTap::wants("artifact", "recompile_reasons"), Want::payload);
  EXPECT_EQ(TraceTap::wants("artifact", "fx_graph_runnable"), Want::nothing);
  for (const std::string_view kind : TraceTap::wanted()) {
    const bool any = kind == "artifact" || TraceTap::wants(kind) != Want::nothing;
    EXPECT_TRUE(any) << kind;
  }
  for (const std::string_view name : TraceTap::wanted_artifacts()) {
    EXPECT_NE(TraceTap::wants("artifact", name), Want::nothing) << name;
  }
}

}  // namespace
}  // namespace ringmain::compile
