// Does all that a hook holds go when the hook does, and what a part holds when the part does?
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::AbortHookArgs;
using collective::Barrier;
using collective::Communicator;
using collective::CompletionHookArgs;
using collective::Hook;
using collective::Operation;
using collective::PostHookArgs;
using collective::PreHookArgs;
using collective::RemovableHandle;

class CommunicatorCapturesTest : public testing::Test {
 protected:
  std::size_t subscriptions() const { return bus_.stats().subscriptions.size(); }
  Communicator named(std::string_view name) {
    auto options = world();
    options.name = name;
    return Communicator::make(bus_, options).value();
  }
  Bus bus_;
  Communicator comm_ = named("world");
};

TEST_F(CommunicatorCapturesTest, ARemovedHooksCapturesAreDestroyedThenAndNotWithTheHandle) {
  const auto held = std::make_shared<int>(0);
  std::array<RemovableHandle, 4> handles{
      comm_.register_pre_hook([held](const PreHookArgs&) { return Verdict::allow(); }).value(),
      comm_.register_post_hook([held](const PostHookArgs&) {}).value(),
      comm_.register_completion_hook([held](const CompletionHookArgs&) {}).value(),
      comm_.register_abort_hook([held](const AbortHookArgs&) {}).value()};
  EXPECT_EQ(held.use_count(), 5);
  long left = 5;
  for (const RemovableHandle& one : handles) {
    EXPECT_EQ(one.remove(), Detached::done);
    EXPECT_EQ(held.use_count(), --left);
  }
}

TEST_F(CommunicatorCapturesTest, AHookThatHoldsTheLastCopyOfItsCommunicatorEndsItWhenItIsRemoved) {
  Communicator last = named("short");
  Hook hook = std::move(last.post_hook([last](const PostHookArgs&) {}).value());
  last = {};
  EXPECT_TRUE(Communicator::find(bus_, "short"));
  EXPECT_EQ(hook.reset(), Detached::done);
  EXPECT_FALSE(Communicator::find(bus_, "short"));
}

TEST_F(CommunicatorCapturesTest, AHookThatHoldsItsOwnHandleMayBeRemovedByIt) {
  struct Own {
    Hook hook;
    std::shared_ptr<int> held = std::make_shared<int>(0);
  };
  auto own = std::make_shared<Own>();
  const auto held = own->held;
  Own* const at = own.get();
  at->hook = std::move(comm_.post_hook([own](const PostHookArgs&) {}).value());
  own.reset();  // the hook holds it alone
  EXPECT_EQ(held.use_count(), 2);
  (void)at->hook.reset();
  EXPECT_EQ(held.use_count(), 1);
}

/// A destructor of captures is code of the user's, and may do what a hook may.
TEST_F(CommunicatorCapturesTest, ADestructorOfCapturesMayUseTheCommunicator) {
  struct Registers {
    Communicator comm;
    explicit Registers(Communicator of) : comm(std::move(of)) {}
    ~Registers() {
      EXPECT_TRUE(comm.pre_hook([](const PreHookArgs&) { return Verdict::allow(); }));
      EXPECT_TRUE(comm.abort_hook([](const AbortHookArgs&) {}));
      (void)comm.run(Barrier{}, [](const Operation&) {});
    }
  };
  {
    const auto held = std::make_shared<Registers>(comm_);
    (void)comm_.register_pre_hook([held](const PreHookArgs&) { return Verdict::allow(); })
        .value()
        .remove();
    (void)comm_.register_abort_hook([held](const AbortHookArgs&) {}).value().remove();
  }
  EXPECT_TRUE(comm_.post_hook([](const PostHookArgs&) {}));  // looks at those that are gone
  EXPECT_TRUE(comm_.abort_hook([](const AbortHookArgs&) {}));
}

TEST_F(CommunicatorCapturesTest, OneThatWasRemovedInACallbackIsWaitedForByTheNextRemoval) {
  Door door;
  std::atomic<bool> over{false};
  Hook hook = std::move(comm_
                            .post_hook([&](const PostHookArgs&) {
                              EXPECT_TRUE(door.pass());
                              over = true;
                            })
                            .value());
  std::thread caller([&] { (void)comm_.run(Barrier{}, [](const Operation&) {}); });
  EXPECT_TRUE(door.await_arrival());
  const auto other = named("other");
  const auto remover =
      other.post_hook([&](const PostHookArgs&) { EXPECT_EQ(hook.reset(), Detached::deferred); });
  EXPECT_TRUE(other.run(Barrier{}, [](const Operation&) {}));
  EXPECT_FALSE(hook.attached());
  EXPECT_EQ(hook.reset_for(nanoseconds(1)), Detached::timeout);
  door.open();
  EXPECT_EQ(hook.reset(), Detached::done);
  EXPECT_TRUE(over);
  caller.join();
}

TEST_F(CommunicatorCapturesTest, APartThatIsGoneLeavesNothingWithTheHooksOfItsParent) {
  const auto completion = comm_.completion_hook([](const CompletionHookArgs&) {});
  const auto pre = comm_.pre_hook([](const PreHookArgs&) { return Verdict::allow(); });
  const auto abort = comm_.abort_hook([](const AbortHookArgs&) {});
  const std::size_t before = subscriptions();
  auto options = world();
  options.name = "half";
  for (int i = 0; i < 5000; ++i) {  // more than a bus has rows
    const auto part = comm_.part(options);
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_TRUE(part.value().run(Barrier{}, [](const Operation& one) { (void)one.completed(); }));
  }
  EXPECT_EQ(subscriptions(), before);
}

TEST_F(CommunicatorCapturesTest, ManyThatComeAndGoLeaveNothing) {
  const std::size_t before = subscriptions();
  for (int i = 0; i < 5000; ++i) {
    const auto one = named("short");
    const auto pre = one.pre_hook([](const PreHookArgs&) { return Verdict::allow(); });
    (void)one.register_post_hook([](const PostHookArgs&) {});
    (void)one.register_completion_hook([](const CompletionHookArgs&) {});
    (void)one.register_abort_hook([](const AbortHookArgs&) {});
    ASSERT_TRUE(one.run(Barrier{}, [](const Operation&) {}));
  }
  EXPECT_EQ(subscriptions(), before);
}

TEST_F(CommunicatorCapturesTest, WhereABusHasNoMoreRowsNothingIsHalfDone) {
  const auto completion = comm_.completion_hook([](const CompletionHookArgs&) {});
  const auto pre = comm_.pre_hook([](const PreHookArgs&) { return Verdict::allow(); });
  const auto post = comm_.post_hook([](const PostHookArgs&) {});
  std::vector<RemovableHandle> all;
  std::string refusal;
  while (refusal.empty() && all.size() < 5000) {
    auto one = comm_.register_abort_hook([](const AbortHookArgs&) {});
    if (one) {
      all.push_back(one.value());
    } else {
      refusal = one.error().message;
    }
  }
  EXPECT_EQ(refusal,
            "no room for hook row 'world abort hooks': a bus holds 4096 channels, mailboxes and "
            "hook rows; use another bus");
  const std::size_t before = subscriptions();
  EXPECT_FALSE(comm_.part(world()));
  EXPECT_FALSE(named("other").pre_hook([](const PreHookArgs&) { return Verdict::allow(); }));
  EXPECT_EQ(subscriptions(), before);
  for (const RemovableHandle& one : all) (void)one.remove();
  EXPECT_TRUE(comm_.part(world()));
}

}  // namespace
}  // namespace ringmain::tests
