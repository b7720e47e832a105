// Does a communicator do as it says where hooks and subscribers give it up, end it or ask again?
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Abort;
using collective::Aborted;
using collective::AbortHookArgs;
using collective::Barrier;
using collective::Communicator;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Operation;
using collective::Outcome;
using collective::PostHookArgs;
using collective::PreHookArgs;
using collective::Shapes;
using collective::Tensor;
using How_it_went = Aborted::How;
using std::chrono::hours;

class CommunicatorEdgesTest : public testing::Test {
 protected:
  Communicator make() {
    auto options = world();
    options.abort = [this](Name) { ++given_up_; };
    return Communicator::make(bus_, options).value();
  }
  Bus bus_;
  std::atomic<int> given_up_{0};
  Communicator comm_ = make();
};

TEST_F(CommunicatorEdgesTest, ACopyOfAnOperationKeepsItsCommunicatorsMemory) {
  const Heard<Issued> heard(bus_);
  std::weak_ptr<int> memory;
  Operation copy;
  {
    auto options = world();
    auto held = std::make_shared<int>(0);
    memory = held;
    options.abort = [held](Name) {};
    const Communicator comm = Communicator::make(bus_, options).value();
    auto issuing = comm.issue(Barrier{});
    copy = issuing.operation();
  }
  EXPECT_FALSE(memory.expired());
  EXPECT_FALSE(copy.completed());  // it was cancelled when its communicator went
  copy = {};
  EXPECT_TRUE(memory.expired());
}

TEST_F(CommunicatorEdgesTest, AnAbortMayWaitForEver) {
  std::atomic<bool> over{false};
  const auto hook = comm_.abort_hook([&](const AbortHookArgs&) {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    over = true;
  });
  const Aborted done = comm_.abort("x", "test", nanoseconds::max());
  EXPECT_TRUE(done.stuck.empty());
  EXPECT_TRUE(over);
}

TEST_F(CommunicatorEdgesTest, AnAbortWithNoTimeLeavesItsHooks) {
  for (const nanoseconds none : {nanoseconds(0), nanoseconds(-1), nanoseconds::min()}) {
    const auto one = make();
    Door door;
    {
      const auto hook = one.abort_hook([&](const AbortHookArgs&) { EXPECT_TRUE(door.pass()); });
      EXPECT_EQ(one.abort("x", "test", none).stuck.size(), 1u);
      door.open();
    }
  }
}

TEST_F(CommunicatorEdgesTest, WhoHearsOfAnAbortInlineMayAskForItAgain) {
  std::vector<How_it_went> answers;
  const auto heard = bus_.channel<Abort>().subscribe_inline([&](const Abort&) {
    auto& all = answers;
    all.push_back(comm_.abort("again", "test", hours(1)).how);
  });
  EXPECT_EQ(comm_.abort("x", "test", hours(1)).how, How_it_went::done);
  EXPECT_EQ(answers, (std::vector{How_it_went::joined, How_it_went::ended}));
}

/// A backend that gives up by itself calls only hooks; who asks for an abort meanwhile wants more.
TEST_F(CommunicatorEdgesTest, AnAbortThatMeetsHooksOfAnIncidentStillGivesTheGroupUp) {
  Door door;
  std::atomic<int> calls{0};
  const auto hook = comm_.abort_hook([&](const AbortHookArgs&) {
    ++calls;
    EXPECT_TRUE(door.pass());
  });
  Operation open;
  const auto listens = bus_.channel<Failed>().subscribe([](const Failed&) {});
  EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation& one) { open = one; }));
  std::thread first([&] { (void)comm_.run_abort_hooks("x", "backend", hours(1)); });
  EXPECT_TRUE(door.await_arrival());
  std::atomic<bool> asks{false};
  std::thread second([&] {
    asks = true;
    EXPECT_EQ(comm_.abort("y", "watchdog", hours(1)).how, How_it_went::done);
  });
  EXPECT_TRUE(eventually([&] { return asks.load(); }));
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time to meet them
  door.open();
  first.join();
  second.join();
  EXPECT_TRUE(comm_.aborted());
  EXPECT_EQ(given_up_, 1);
  EXPECT_FALSE(open.completed());
  EXPECT_GE(calls, 1);
}

TEST_F(CommunicatorEdgesTest, WhatAPreHookGivesUpIsNotCalled) {
  Heard<Issued> issued(bus_);
  Heard<Failed> failed(bus_);
  std::vector<Outcome> outcomes;
  const auto pre = comm_.pre_hook([&](const PreHookArgs& args) {
    EXPECT_EQ(args.communicator->abort("NaN", "guard", hours(1)).how, How_it_went::done);
    return Verdict::allow();
  });
  const auto post = comm_.post_hook([&](const PostHookArgs& args) {
    outcomes.push_back(args.outcome);
    EXPECT_EQ(args.reason.view(), "its communicator was aborted");
  });
  auto issuing = comm_.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(), "its communicator was aborted");
  EXPECT_EQ(outcomes, std::vector{Outcome::refused});
  ASSERT_EQ(issued.all().size(), 1u);
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].how, How::aborted);
}

TEST_F(CommunicatorEdgesTest, NoHookIsRegisteredOnABusThatHasStopped) {
  const auto allows = [](const collective::PreHookArgs&) { return Verdict::allow(); };
  EXPECT_TRUE(comm_.register_pre_hook(allows));
  (void)bus_.stop();
  const auto late = comm_.pre_hook(allows);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message,
            "communicator 'world': the bus has stopped; register hooks before stop()");
}

TEST_F(CommunicatorEdgesTest, NoneIsMadeOnABusThatHasStopped) {
  (void)bus_.stop();
  const auto late = Communicator::make(bus_, world());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Error::Code::refused);
  EXPECT_EQ(late.error().message,
            "communicator 'world': the bus has stopped; make it before stop()");
}

TEST_F(CommunicatorEdgesTest, NoneIsMadeInAForkedChildOnItsParentsBus) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto late = Communicator::make(bus_, world());
    const bool refused = !late && late.error().code == Error::Code::refused;
    std::_Exit(refused && !comm_.part(world()) ? 0 : 1);
  }
  int how = 0;
  EXPECT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

TEST_F(CommunicatorEdgesTest, ExtremesOfArgumentsArePublishedAsTheyAre) {
  Heard<Issued> issued(bus_);
  Heard<Shapes> shapes(bus_);
  constexpr std::array<std::int64_t, 3> kHuge{INT64_MAX, INT64_MIN, -1};
  const std::string long_name(64 * 1024, 'x');
  const Tensor tensor{.sizes = kHuge, .dtype = Name(long_name), .bytes = UINT64_MAX};
  const std::array<Tensor, 2> both{tensor, tensor};
  EXPECT_TRUE(comm_.run(collective::AllToAll{both, both}, [](const Operation&) {}));
  EXPECT_TRUE(comm_.run(collective::Other{.op = {}, .peer = INT_MIN}, [](const Operation&) {}));
  EXPECT_TRUE(comm_.run(collective::Other{.op = long_name}, [](const Operation&) {}));
  ASSERT_EQ(issued.all().size(), 3u);
  EXPECT_EQ(issued.all()[1].peer, INT_MIN);
  EXPECT_EQ(shapes.all()[0].cut, 4u);
  constexpr std::array<int, 2> kFar{INT_MIN, INT_MAX};
  auto options = world();
  options.name = long_name;
  options.size = 2;
  options.ranks = kFar;
  const auto far = Communicator::make(bus_, options);
  ASSERT_TRUE(far);
  EXPECT_EQ(Communicator::find(bus_, long_name), far.value());
}

}  // namespace
}  // namespace ringmain::tests
