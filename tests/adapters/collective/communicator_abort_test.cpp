// Is a group given up once, with all its hooks called, whatever one of them does?
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
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
using collective::Communicator;
using collective::CommunicatorOptions;
using collective::Edge;
using collective::Failed;
using collective::How;
using collective::Operation;
using How_it_went = Aborted::How;
using std::chrono::hours;

class CommunicatorAbortTest : public testing::Test {
 protected:
  static Communicator make(Bus& bus, std::function<void(Name)> abort) {
    CommunicatorOptions options = world();
    options.abort = std::move(abort);
    return Communicator::make(bus, options).value();
  }
  Bus bus_;
  std::atomic<int> given_up_{0};
  Communicator comm_ = make(bus_, [this](Name) { ++given_up_; });
};

TEST_F(CommunicatorAbortTest, HooksRunThenWhatIsOpenFailsThenTheBackendGivesUp) {
  Heard<Failed> failed(bus_);
  Heard<Abort> aborts(bus_);
  Operation open;
  EXPECT_TRUE(comm_.run(all_reduced(), [&](const Operation& one) { open = one; }));
  std::atomic<int> hooks{0};
  const auto count = [&](const AbortHookArgs& args) {
    EXPECT_EQ(args.reason.view(), "rank 3 is lost");
    EXPECT_EQ(args.asked_by.view(), "watchdog");
    EXPECT_EQ(given_up_, 0);
    ++hooks;
  };
  const auto first = comm_.abort_hook(count), second = comm_.abort_hook(count);
  const auto thrower =
      comm_.abort_hook([](const AbortHookArgs&) { throw std::runtime_error("its own"); });
  EXPECT_EQ(hooks, 0);  // registering calls nothing
  EXPECT_TRUE(comm_.supports_abort());
  EXPECT_FALSE(comm_.aborted());
  const Aborted done = comm_.abort("rank 3 is lost", "watchdog", hours(1));
  EXPECT_EQ(done.how, How_it_went::done);
  EXPECT_EQ(done.hooks, 3u);
  EXPECT_EQ(done.operations, 1u);
  EXPECT_TRUE(done.stuck.empty());
  EXPECT_EQ(hooks, 2);
  EXPECT_EQ(given_up_, 1);
  EXPECT_TRUE(comm_.aborted());
  EXPECT_FALSE(open.completed());
  ASSERT_EQ(failed.all().size(), 1u);
  EXPECT_EQ(failed.all()[0].how, How::aborted);
  EXPECT_EQ(failed.all()[0].reason.view(), "rank 3 is lost");
  ASSERT_EQ(aborts.all().size(), 2u);
  EXPECT_EQ(aborts.all()[0].edge, Edge::begin);
  EXPECT_EQ(aborts.all()[1].edge, Edge::end);
  EXPECT_EQ(aborts.all()[0].incident, done.incident);
  EXPECT_EQ(aborts.all()[1].incident, done.incident);
  EXPECT_EQ(aborts.all()[1].hooks, 3u);
  EXPECT_EQ(aborts.all()[1].operations, 1u);
  EXPECT_EQ(aborts.all()[1].group.view(), "world");

  auto issuing = comm_.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(), "its communicator was aborted");
  EXPECT_EQ(comm_.abort("again").how, How_it_went::ended);
  EXPECT_FALSE(comm_.abort_hook(count));
  EXPECT_EQ(hooks, 2);
  EXPECT_EQ(given_up_, 1);
}

TEST_F(CommunicatorAbortTest, ABackendWithoutAnAbortSaysSoAndNoHookIsCalled) {
  const Communicator plain = make(bus_, nullptr);
  std::atomic<int> hooks{0};
  const auto hook = plain.abort_hook([&](const AbortHookArgs&) { ++hooks; });
  EXPECT_FALSE(plain.supports_abort());
  EXPECT_EQ(plain.abort("x").how, How_it_went::unsupported);
  EXPECT_FALSE(plain.aborted());
  EXPECT_EQ(hooks, 0);
}

TEST_F(CommunicatorAbortTest, ABackendMayRunTheHooksByItselfEachTimeUntilTheyAreRemoved) {
  std::atomic<int> hooks{0};
  const auto handle = comm_.register_abort_hook([&](const AbortHookArgs&) { ++hooks; }).value();
  EXPECT_EQ(comm_.run_abort_hooks("first", "backend", hours(1)).hooks, 1u);
  EXPECT_EQ(comm_.run_abort_hooks("second", "backend", hours(1)).hooks, 1u);
  EXPECT_EQ(hooks, 2);
  EXPECT_EQ(handle.remove(), Detached::done);
  EXPECT_EQ(comm_.run_abort_hooks("third").hooks, 0u);
  EXPECT_EQ(hooks, 2);
  EXPECT_FALSE(comm_.aborted());
  EXPECT_EQ(given_up_, 0);
}

TEST_F(CommunicatorAbortTest, OneThatIsStuckIsLeftAndNamedAndTheOthersAreCalled) {
  struct Stuck {
    std::atomic<bool> go{false}, ended{false};
  };
  const auto stuck = std::make_shared<Stuck>();
  std::atomic<int> others{0};
  const auto handle = comm_
                          .register_abort_hook(
                              [stuck](const AbortHookArgs&) {
                                stuck->go.wait(false);
                                stuck->ended = true;
                              },
                              {.name = "dump the recorder"})
                          .value();
  const auto other = comm_.abort_hook([&](const AbortHookArgs&) { ++others; });

  Aborted done;
  std::thread aborter([&] { done = comm_.abort("x", "watchdog", std::chrono::milliseconds(50)); });
  aborter.join();
  EXPECT_EQ(done.how, How_it_went::done);
  EXPECT_EQ(done.hooks, 2u);
  EXPECT_NE(std::find(done.stuck.begin(), done.stuck.end(), Name("dump the recorder")),
            done.stuck.end());
  EXPECT_EQ(given_up_, 1);
  EXPECT_TRUE(eventually([&] { return others == 1; }));
  EXPECT_EQ(handle.remove_for(nanoseconds(1)), Detached::timeout);
  stuck->go = true;
  stuck->go.notify_all();
  EXPECT_TRUE(eventually([&] { return stuck->ended.load(); }));
  EXPECT_EQ(handle.remove(), Detached::done);
}

TEST_F(CommunicatorAbortTest, ASecondCallerWaitsForTheFirstOnesHooks) {
  std::atomic<bool> inside{false}, go{false}, asks{false};
  std::atomic<int> hooks{0};
  const auto hook = comm_.abort_hook([&](const AbortHookArgs&) {
    ++hooks;
    inside = true;
    go.wait(false);
  });
  std::thread first([&] { EXPECT_EQ(comm_.abort("1", "a", hours(1)).how, How_it_went::done); });
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  std::thread second([&] {
    asks = true;
    const How_it_went how = comm_.abort("2", "b", hours(1)).how;
    EXPECT_TRUE(go);
    // It may have asked when all was over.
    EXPECT_TRUE(how == How_it_went::joined || how == How_it_went::ended);
  });
  EXPECT_TRUE(eventually([&] { return asks.load(); }));
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time for an answer too early
  go = true;
  go.notify_all();
  first.join();
  second.join();
  EXPECT_EQ(hooks, 1);
  EXPECT_EQ(given_up_, 1);
}

TEST_F(CommunicatorAbortTest, AHookAndTheBackendsAbortMayAskForItAgain) {
  std::vector<How_it_went> answers(2);
  Communicator self;
  self = make(bus_, [&](Name) {
    // The thread that it joins may ask as well.
    std::thread([&] { answers[1] = self.abort("from below").how; }).join();
  });
  const auto hook =
      self.abort_hook([&](const AbortHookArgs&) { answers[0] = self.abort("again").how; });
  EXPECT_EQ(self.abort("x", "application", hours(1)).how, How_it_went::done);
  EXPECT_EQ(answers, (std::vector{How_it_went::joined, How_it_went::joined}));
}

TEST_F(CommunicatorAbortTest, ABackendThatThrowsInItsAbortHarmsNobody) {
  const Communicator bad = make(bus_, [](Name) { throw std::runtime_error("its own"); });
  EXPECT_EQ(bad.abort("x").how, How_it_went::done);
  const Communicator worse = make(bus_, [](Name) { throw 7; });
  EXPECT_EQ(worse.abort("x").how, How_it_went::done);
}

TEST_F(CommunicatorAbortTest, AHookMayRemoveItselfAndBeRemovedByAnother) {
  collective::RemovableHandle mine;
  std::atomic<int> calls{0};
  std::atomic<bool> there{false};
  mine = comm_
             .register_abort_hook([&](const AbortHookArgs&) {
               there.wait(false);
               ++calls;
               EXPECT_EQ(mine.remove(), Detached::deferred);
             })
             .value();
  there = true;
  there.notify_all();
  (void)comm_.run_abort_hooks("x", "backend", hours(1));
  (void)comm_.run_abort_hooks("x", "backend", hours(1));
  EXPECT_EQ(calls, 1);
}

TEST_F(CommunicatorAbortTest, ACommunicatorMayGoWhileAHookIsStuck) {
  const auto go = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    const Communicator short_lived = make(bus_, [](Name) {});
    (void)short_lived.register_abort_hook([go, ended](const AbortHookArgs&) {
      go->wait(false);
      *ended = true;
    });
    const Aborted done = short_lived.abort("x", "watchdog", nanoseconds(1));
    EXPECT_EQ(done.stuck, std::vector{Name("an abort hook without a name")});
  }
  *go = true;
  go->notify_all();
  EXPECT_TRUE(eventually([&] { return ended->load(); }));
}

TEST_F(CommunicatorAbortTest, AnEndedOneIsNotAborted) {
  std::atomic<int> hooks{0};
  const auto hook = comm_.abort_hook([&](const AbortHookArgs&) { ++hooks; });
  comm_.end();
  EXPECT_EQ(comm_.abort("x").how, How_it_went::ended);
  EXPECT_EQ(comm_.run_abort_hooks("x").how, How_it_went::ended);
  EXPECT_EQ(hooks, 0);
}

}  // namespace
}  // namespace ringmain::tests
