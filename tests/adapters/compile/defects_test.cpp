// Is each defect of torch._dynamo.callback shown by a model of it, and absent here?
#include <algorithm>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/compile/scope.hpp"

#include "tests/adapters/compile/original.hpp"

namespace ringmain::compile {
namespace {

using original::CallbackArgs;
using original::Handler;
using Words = std::vector<std::string>;

const CallOptions kHere{.here = true};
const Compiled kFrame{.trigger = Trigger::dynamo};
void nothing() {}

struct DefectsTest : testing::Test {
  Handler theirs;
  Words said;
  TestBus bus;
  Registry ours{bus};

  auto say(const char* word) {
    return [this, word](const auto&) { said.emplace_back(word); };
  }
  Words take() { return std::exchange(said, {}); }
  void compile() { const Scope scope(ours, kFrame); }
};

TEST_F(DefectsTest, WhoRemovesItselfHidesNobody) {
  theirs.start_callbacks.append({"1", [this](const CallbackArgs&) {
                                   said.emplace_back("1");
                                   theirs.start_callbacks.remove("1");
                                 }});
  theirs.start_callbacks.append({"2", say("2")});
  theirs.start_callbacks.append({"3", say("3")});
  theirs.install_callbacks({1, "0/0"}, nothing);
  EXPECT_EQ(take(), (Words{"1", "3"}));

  Registry::Handle first;
  first = ours.on_start(
      [&](const Start&) {
        said.emplace_back("1");
        EXPECT_EQ(ours.remove(first), Detached::deferred);
      },
      kHere);
  (void)ours.on_start(say("2"), kHere);
  (void)ours.on_start(say("3"), kHere);
  compile();
  EXPECT_EQ(take(), (Words{"1", "2", "3"}));
  compile();
  EXPECT_EQ(take(), (Words{"2", "3"}));
}

TEST_F(DefectsTest, WhoComesDuringADeliveryIsHeardFromTheNextOn) {
  theirs.start_callbacks.append({"1", [this](const CallbackArgs&) {
                                   theirs.start_callbacks.append({"2", say("2")});
                                 }});
  theirs.install_callbacks({1, "0/0"}, nothing);
  EXPECT_EQ(take(), (Words{"2"}));  // the list that runs has grown

  bool once = false;
  (void)ours.on_start(
      [&](const Start&) {
        if (!std::exchange(once, true)) (void)ours.on_start(say("2"), kHere);
      },
      kHere);
  compile();
  EXPECT_EQ(take(), Words{});
  compile();
  EXPECT_EQ(take(), (Words{"2"}));
}

TEST_F(DefectsTest, AHandleRemovesItsOwnAndAnUnknownOneNothing) {
  theirs.start_callbacks.append({"same", say("1")});
  theirs.start_callbacks.append({"same", say("2")});
  theirs.start_callbacks.remove("same");  // of the second's owner
  theirs.install_callbacks({1, "0/0"}, nothing);
  EXPECT_EQ(take(), (Words{"2"}));
  EXPECT_THROW(theirs.start_callbacks.remove("other"), original::ValueError);

  (void)ours.on_start(say("1"), kHere);
  const auto second = ours.on_start(say("2"), kHere);
  EXPECT_EQ(ours.remove(second), Detached::done);
  compile();
  EXPECT_EQ(take(), (Words{"1"}));
  EXPECT_EQ(ours.remove(second), Detached::was_not_attached);
  EXPECT_EQ(ours.remove({}), Detached::was_not_attached);
}

TEST_F(DefectsTest, ACallbackMayCompile) {
  theirs.start_callbacks.append({"1", [this](const CallbackArgs&) {
                                   theirs.install_callbacks({1, "1/0"}, nothing);
                                 }});
  EXPECT_THROW(theirs.install_callbacks({1, "0/0"}, nothing), original::WouldHang);

  const auto ends = bus.heard<End>();
  (void)ours.on_start([this](const Start&) { compile(); }, kHere);
  compile();
  bus.deliver();
  EXPECT_EQ(ends.size(), 2u);
  EXPECT_EQ(ours.active(), 0u);
}

TEST_F(DefectsTest, ASlowCallbackHoldsUpItsOwnCompileOnly) {
  const auto beside = [](auto&& slow, auto&& other) {
    std::latch inside(1);
    std::latch go_on(1);
    std::thread thread([&] { slow(inside, go_on); });
    inside.wait();
    other();
    go_on.count_down();
    thread.join();
  };
  std::latch* inside = nullptr;
  std::latch* go_on = nullptr;
  const auto block = [&](const auto&) {
    if (inside == nullptr) return;
    auto* const here = std::exchange(inside, nullptr);
    auto* const leave = go_on;
    here->count_down();
    leave->wait();
  };
  theirs.start_callbacks.append({"slow", block});
  beside(
      [&](std::latch& in, std::latch& on) {
        inside = &in, go_on = &on;
        theirs.install_callbacks({1, "0/0"}, nothing);
      },
      [&] {
        EXPECT_THROW(theirs.install_callbacks({1, "1/0"}, nothing), std::logic_error);
      });

  (void)ours.on_start(block, {.every = true, .here = true});
  const auto ends = bus.heard<End>();
  beside(
      [&](std::latch& in, std::latch& on) {
        inside = &in, go_on = &on;
        compile();
      },
      [&] {
        compile();  // it would not return
        bus.deliver();
        EXPECT_EQ(ends.size(), 1u);
      });
}

TEST_F(DefectsTest, NestedCompilesAreOnePairAndEachASpan) {
  std::vector<std::string> ids;
  theirs.start_callbacks.append({"s", [&](const CallbackArgs& a) { ids.push_back(a.compile_id); }});
  theirs.end_callbacks.append({"e", [&](const CallbackArgs& a) { ids.push_back(a.compile_id); }});
  theirs.install_callbacks({1, "0/0"}, [&] { theirs.install_callbacks({1, "1/0"}, nothing); });
  EXPECT_EQ(ids, (Words{"0/0", "0/0"}));  // of 1/0 nobody has heard

  const auto starts = bus.heard<Start>();
  const auto ends = bus.heard<End>();
  (void)ours.on_both(say("start"), say("end"));
  {
    const Scope outer(ours, kFrame);
    EXPECT_EQ(ours.active(), 1u);
    const Scope inner(ours, {.trigger = Trigger::lazy_backward});
    EXPECT_EQ(ours.active(), 2u);
  }
  bus.deliver();
  EXPECT_EQ(take(), (Words{"start", "end"}));
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].span, starts[1].span);
  EXPECT_EQ(ends[1].span, starts[0].span);
  EXPECT_TRUE(starts[0].outermost && !starts[1].outermost && !ends[0].outermost &&
              ends[1].outermost);
  EXPECT_EQ(starts[1].depth, 1u);
}

TEST_F(DefectsTest, TheEndOfOverlappingCompilesIsJoinedWithItsStart) {
  const auto starts = bus.heard<Start>();
  const auto ends = bus.heard<End>();
  auto first = std::make_unique<Scope>(ours, kFrame);
  auto second = std::make_unique<Scope>(ours, kFrame);
  first.reset();  // the one that leaves last is the second
  second.reset();
  compile();
  bus.deliver();
  EXPECT_EQ(ends[1].span, starts[1].span);
  EXPECT_TRUE(ends[1].outermost);
  EXPECT_EQ(ends[1].pair, starts[0].pair);
  EXPECT_NE(starts[2].pair, starts[0].pair);
}

TEST_F(DefectsTest, AStartThatThrowsHidesNobodyAndEndsNothing) {
  theirs.start_callbacks.append({"1", [](const CallbackArgs&) { throw std::runtime_error("1"); }});
  theirs.start_callbacks.append({"2", say("start 2")});
  theirs.end_callbacks.append({"e", say("end")});
  bool compiled = false;
  EXPECT_THROW(theirs.install_callbacks({1, "0/0"}, [&] { compiled = true; }), std::runtime_error);
  EXPECT_EQ(take(), (Words{"end"}));
  EXPECT_FALSE(compiled);

  const auto bad = ours.on_start([](const Start&) { throw std::runtime_error("1"); }, kHere);
  (void)ours.on_start(say("start 2"), kHere);
  (void)ours.on_end(say("end"), kHere);
  {
    const Scope scope(ours, kFrame);
    compiled = static_cast<bool>(scope);
    EXPECT_EQ(take(), (Words{"start 2"}));
  }
  EXPECT_TRUE(compiled);
  EXPECT_EQ(take(), (Words{"end"}));
  EXPECT_EQ(ours.figures(bad).threw, 1u);
}

TEST_F(DefectsTest, AVetoIsAnswerAndRecordAndNoException) {
  const Name why("not while serving");
  const auto ends = bus.heard<End>();
  const auto rule = ours.guard([why](const Start&) { return Verdict::veto(why); });
  {
    const Scope scope(ours, kFrame);
    EXPECT_FALSE(scope);
    EXPECT_EQ(scope.why(), why);
  }
  EXPECT_EQ(ours.remove(rule), Detached::done);
  compile();
  bus.deliver();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].outcome, Outcome::cancelled);
  EXPECT_EQ(ends[0].reason, why);
  EXPECT_EQ(ends[1].outcome, Outcome::completed);
  EXPECT_EQ(ours.active(), 0u);
}

TEST_F(DefectsTest, AnEndThatThrowsSilencesNobody) {
  theirs.start_callbacks.append({"s", say("start")});
  theirs.end_callbacks.append({"e", [](const CallbackArgs&) { throw std::runtime_error("e"); }});
  EXPECT_THROW(theirs.install_callbacks({1, "0/0"}, nothing), std::runtime_error);
  EXPECT_EQ(theirs.pending(), 1);
  theirs.install_callbacks({1, "1/0"}, nothing);
  EXPECT_EQ(take(), (Words{"start"}));  // the second compile was not heard
  EXPECT_THROW(theirs.clear(), original::AssertionError);
  EXPECT_EQ(theirs.start_callbacks.size(), 0u);  // half a reset

  (void)ours.on_start(say("start"), kHere);
  (void)ours.on_end([](const End&) { throw std::runtime_error("e"); }, kHere);
  compile();
  EXPECT_EQ(ours.active(), 0u);
  compile();
  EXPECT_EQ(take(), (Words{"start", "start"}));
}

TEST_F(DefectsTest, TheCompilesOwnErrorReachesItsCallerAndTheEnd) {
  const auto fail = [] { throw std::out_of_range("the compile's own"); };
  theirs.end_callbacks.append({"e", [](const CallbackArgs&) { throw std::runtime_error("e"); }});
  EXPECT_THROW(theirs.install_callbacks({1, "0/0"}, fail), std::runtime_error);

  const auto ends = bus.heard<End>();
  (void)ours.on_end([](const End&) { throw std::runtime_error("e"); }, kHere);
  EXPECT_THROW(
      {
        Scope scope(ours, kFrame);
        scope.run(fail);
      },
      std::out_of_range);
  EXPECT_THROW(
      {
        const Scope scope(ours, kFrame);
        fail();
      },
      std::out_of_range);
  bus.deliver();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].outcome, Outcome::failed);
  EXPECT_EQ(ends[0].exception.view(), "std::out_of_range");
  EXPECT_EQ(ends[0].reason.view(), "the compile's own");
  EXPECT_EQ(ends[1].outcome, Outcome::failed);
}

TEST_F(DefectsTest, CallbacksOutliveAResetAndHearOfIt) {
  theirs.start_callbacks.append({"s", say("start")});
  theirs.clear();
  theirs.install_callbacks({1, "0/0"}, nothing);
  EXPECT_EQ(take(), Words{});

  const auto resets = bus.heard<Reset>();
  const auto starts = bus.heard<Start>();
  (void)ours.on_start(say("start"), kHere);
  ours.reset();
  compile();
  bus.deliver();
  EXPECT_EQ(take(), (Words{"start"}));
  ASSERT_EQ(resets.size(), 1u);
  EXPECT_FALSE(resets[0].inferred);
  EXPECT_EQ(starts[0].reset, 1u);
}

TEST_F(DefectsTest, AnEventSaysWhoWhereWhenAndHowItEnded) {
  const CallbackArgs args{1, "3/1"};
  const auto& [trigger, text] = args;  // all that there is
  EXPECT_EQ(trigger, 1);
  EXPECT_EQ(text, "3/1");

  const auto starts = bus.heard<Start>();
  const auto ends = bus.heard<End>();
  Id id;
  id.frame = 3;
  id.recompile = 1;
  id.attempt = 2;
  { const Scope scope(ours, {Trigger::dynamo, id, Name("forward"), Name("/src/m.py"), 38}); }
  bus.deliver();
  const Start& start = starts[0];
  EXPECT_EQ(start.frame, 3);
  EXPECT_EQ(start.attempt, 2u);
  EXPECT_EQ(start.function.view(), "forward");
  EXPECT_EQ(start.line, 38u);
  EXPECT_NE(start.thread, 0u);
  EXPECT_NE(starts.stamps()[0].time_ns, 0);
  EXPECT_EQ(ends[0].outcome, Outcome::completed);
  EXPECT_GE(ends[0].took_ns, 0);
}

TEST_F(DefectsTest, EveryTriggerIsDeliveredAndSpamIsThinned) {
  EXPECT_FALSE(original::fires(static_cast<int>(Trigger::triton_autotuning)));

  const auto all = ours.on_start(say("all"));
  const auto some = ours.on_both(say("start"), say("end"),
                                 {.triggers = bit_of(Trigger::triton_autotuning), .one_in = 10});
  for (int i = 0; i < 100; ++i) {
    const Scope scope(ours, {.trigger = Trigger::triton_autotuning});
  }
  compile();
  bus.deliver();
  EXPECT_EQ(ours.figures(all).calls, 101u);
  EXPECT_EQ(ours.figures(some).calls, 20u);
  EXPECT_EQ(std::count(said.begin(), said.end(), "start"), 10);
  EXPECT_EQ(std::count(said.begin(), said.end(), "end"), 10);
}

}  // namespace
}  // namespace ringmain::compile
