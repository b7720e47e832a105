// Does code for torchcomms' hooks run here with only the object changed that it registers on? Each
// program is what torchcomms' own tests of hooks ask for, and runs on three objects: the stand-in
// itself, a communicator that was attached to one, and a communicator of a backend of ours.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/torchcomms.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/torchcomms_stand_in_comm.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::Operation;
using collective::torchcomms::attach;
using collective::torchcomms::Hooks;
using collective::torchcomms::Refused;
using collective::torchcomms::Source;
using collective::torchcomms::tensor_of;
using stand_in::AllReducePreHookArgs;
using stand_in::BatchOpIssuePreHookArgs;
using stand_in::BroadcastPreHookArgs;
using stand_in::TorchComm;
using Sum = stand_in::ReduceOp;
constexpr auto kSum = Sum::RedOpType::SUM;

/// torchcomms' communicator itself.
class OnTheirs {
 public:
  const std::shared_ptr<TorchComm>& comm() const { return theirs_; }
  void all_reduce(stand_in::Tensor& tensor) { (void)theirs_->all_reduce(tensor, kSum, true); }
  void broadcast(stand_in::Tensor& tensor) { (void)theirs_->broadcast(tensor, 0, false); }
  void barrier() { (void)theirs_->barrier(true); }
  void batch() { (void)theirs_->batch(2, true); }
  void fail() { theirs_->fail(); }

 protected:
  const std::shared_ptr<TorchComm> theirs_ = std::make_shared<TorchComm>("main", true);
};

/// The same, and hooks are registered on ours that is attached to it.
class OnAttached : public OnTheirs {
 public:
  const Hooks<TorchComm>& comm() const { return hooks_; }

 private:
  Bus bus_;
  const Source source_ = std::move(attach(bus_, theirs_).value());
  const Hooks<TorchComm> hooks_{source_.communicator()};
};

struct MakeTensor {
  stand_in::Tensor operator()(const collective::Tensor& ours) const {
    return stand_in::Tensor({ours.sizes.begin(), ours.sizes.end()});
  }
};
/// No torchcomms far and wide.
class OnOurs {
 public:
  const Hooks<TorchComm, MakeTensor>& comm() const { return hooks_; }
  void all_reduce(stand_in::Tensor& tensor) {
    run(collective::AllReduce{tensor_of(tensor), collective::ReduceOp::sum, true});
  }
  void broadcast(stand_in::Tensor& tensor) {
    run(collective::Broadcast{tensor_of(tensor), 0, false});
  }
  void barrier() { run(collective::Barrier{true}); }
  void batch() { run(collective::BatchOpIssue{2, true}); }
  void fail() { (void)ours_.run_abort_hooks("rank 3 is lost"); }

 private:
  void run(const collective::Arguments& arguments) {
    EXPECT_TRUE(ours_.run(arguments, [](const Operation&) {}));
  }
  Bus bus_;
  const Communicator ours_ = Communicator::make(bus_, world()).value();
  const Hooks<TorchComm, MakeTensor> hooks_{ours_};
};

template <class Program>
void on_all(const Program& program) {
  {
    SCOPED_TRACE("on the stand-in for torchcomms");
    OnTheirs theirs;
    program(theirs);
  }
  {
    SCOPED_TRACE("on a communicator that is attached to it");
    OnAttached attached;
    program(attached);
  }
  SCOPED_TRACE("on a communicator of ours");
  OnOurs ours;
  program(ours);
}

TEST(TorchcommsHooksTest, OneAllReduceIsOnePreAndOnePost) {
  on_all([](auto& on) {
    std::vector<std::size_t> before, after;
    auto pre =
        on.comm()->registerPreHook([&](std::size_t op_id, const stand_in::PreHookArgs& args) {
          EXPECT_TRUE(std::holds_alternative<AllReducePreHookArgs>(args));
          before.push_back(op_id);
        });
    auto post =
        on.comm()->registerPostHook([&](std::size_t op_id, const stand_in::PostHookArgs& args) {
          EXPECT_TRUE(std::holds_alternative<TorchComm::Post::AllReducePostHookArgs>(args));
          after.push_back(op_id);
        });
    stand_in::Tensor four({4});
    on.all_reduce(four);
    EXPECT_EQ(before.size(), 1u);
    EXPECT_EQ(before, after);
  });
}

TEST(TorchcommsHooksTest, IdsOfThreeOperationsRiseAndArePaired) {
  on_all([](auto& on) {
    std::vector<std::size_t> before, after, kinds;
    auto pre =
        on.comm()->registerPreHook([&](std::size_t op_id, const stand_in::PreHookArgs& args) {
          before.push_back(op_id);
          kinds.push_back(args.index());
        });
    auto post = on.comm()->registerPostHook(
        [&](std::size_t op_id, const stand_in::PostHookArgs&) { after.push_back(op_id); });
    stand_in::Tensor four({4});
    on.all_reduce(four);
    on.broadcast(four);
    on.barrier();
    EXPECT_EQ(before, after);
    EXPECT_EQ(before.size(), 3u);
    EXPECT_LT(before[0], before[1]);
    EXPECT_LT(before[1], before[2]);
    EXPECT_EQ(kinds, (std::vector<std::size_t>{3, 2, 14}));  // all_reduce, broadcast, barrier
  });
}

TEST(TorchcommsHooksTest, AfterRemovalOfBothNeitherIsCalled) {
  on_all([](auto& on) {
    int before = 0, after = 0;
    auto pre = on.comm()->registerPreHook([&](std::size_t, const auto&) { ++before; });
    auto post = on.comm()->registerPostHook([&](std::size_t, const auto&) { ++after; });
    on.barrier();
    pre->remove();
    post->remove();
    pre->remove();
    on.barrier();
    EXPECT_EQ(before, 1);
    EXPECT_EQ(after, 1);
  });
}

TEST(TorchcommsHooksTest, EachOfTwoPairsIsCalledOnceForAnOperation) {
  on_all([](auto& on) {
    std::vector<int> calls(4);
    for (std::size_t i = 0; i < 2; ++i) {
      (void)on.comm()->registerPreHook([&calls, i](std::size_t, const auto&) { ++calls.at(i); });
      (void)on.comm()->registerPostHook(
          [&calls, i](std::size_t, const auto&) { ++calls.at(2 + i); });
    }
    on.barrier();
    EXPECT_EQ(calls, (std::vector{1, 1, 1, 1}));
    on.barrier();
    EXPECT_EQ(calls, (std::vector{2, 2, 2, 2}));
  });
}

TEST(TorchcommsHooksTest, EachOperationShowsItsOwnArguments) {
  on_all([](auto& on) {
    int reduces = 0, broadcasts = 0;
    auto pre = on.comm()->registerPreHook([&](std::size_t, const stand_in::PreHookArgs& args) {
      if (const auto* const reduce = std::get_if<AllReducePreHookArgs>(&args)) {
        ++reduces;
        EXPECT_EQ(reduce->tensor.numel(), 4);
        EXPECT_EQ(reduce->op.type(), kSum);
        EXPECT_TRUE(reduce->async_op);
      } else {
        const auto& broadcast = std::get<BroadcastPreHookArgs>(args);
        ++broadcasts;
        EXPECT_EQ(broadcast.root, 0);
        EXPECT_FALSE(broadcast.async_op);
      }
    });
    stand_in::Tensor four({2, 2});
    on.all_reduce(four);
    on.broadcast(four);
    EXPECT_EQ(reduces, 1);
    EXPECT_EQ(broadcasts, 1);
  });
}

TEST(TorchcommsHooksTest, ABatchIsOneOperationAndDroppedHandlesKeepTheirHooks) {
  on_all([](auto& on) {
    std::vector<std::size_t> before, after;
    (void)on.comm()->registerPreHook([&](std::size_t op_id, const stand_in::PreHookArgs& args) {
      const auto& batch = std::get<BatchOpIssuePreHookArgs>(args);
      EXPECT_EQ(batch.num_ops, 2u);
      EXPECT_TRUE(batch.async_op);
      before.push_back(op_id);
    });
    (void)on.comm()->registerPostHook([&](std::size_t op_id, const stand_in::PostHookArgs& args) {
      EXPECT_TRUE(std::holds_alternative<TorchComm::Post::BatchOpIssuePostHookArgs>(args));
      after.push_back(op_id);
    });
    on.batch();
    EXPECT_EQ(before.size(), 1u);
    EXPECT_EQ(before, after);
  });
}

TEST(TorchcommsHooksTest, AbortHooksRunAtEachTriggerUntilTheyAreRemoved) {
  on_all([](auto& on) {
    std::atomic<int> calls{0}, others{0};
    auto first = on.comm()->registerAbortHook([&] { ++calls; });
    auto second = on.comm()->registerAbortHook([&] { ++others; });
    auto third = on.comm()->registerAbortHook([&] { ++others; });
    EXPECT_EQ(calls, 0);  // registering calls nothing
    on.fail();
    on.fail();
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(others, 4);
    first->remove();
    on.fail();
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(others, 6);
  });
}

TEST(TorchcommsHooksTest, AThrowingPreHookRefuses) {
  OnAttached attached;
  (void)attached.comm()->registerPreHook(
      [](std::size_t, const auto&) { throw std::runtime_error("NaN in the input"); });
  EXPECT_THROW(attached.barrier(), Refused);
}

TEST(TorchcommsHooksTest, HooksOnAnAttachedOneSeeTorchcommsOwnArguments) {
  Bus bus;
  const auto theirs = std::make_shared<TorchComm>("main");
  const Source source = std::move(attach(bus, theirs).value());
  const Hooks<TorchComm> comm(source.communicator());
  const void* tensor = nullptr;
  const void* work = nullptr;
  std::string part;
  (void)comm->registerPreHook([&](std::size_t, const stand_in::PreHookArgs& args) {
    if (const auto* const reduce = std::get_if<AllReducePreHookArgs>(&args))
      tensor = &reduce->tensor;
  });
  (void)comm->registerPostHook([&](std::size_t, const stand_in::PostHookArgs& args) {
    using Post = TorchComm::Post;
    if (const auto* const reduce = std::get_if<Post::AllReducePostHookArgs>(&args))
      work = reduce->work.lock().get();
    if (const auto* const split = std::get_if<Post::SplitPostHookArgs>(&args))
      part = split->new_comm.lock()->getCommName();
  });
  stand_in::Tensor four({4});
  const auto done = theirs->all_reduce(four, kSum, true);
  EXPECT_EQ(tensor, &four);
  EXPECT_EQ(work, done.get());
  (void)theirs->split({0}, "half");
  EXPECT_EQ(part, "half");
}

TEST(TorchcommsHooksTest, WithoutATensorToShowAHookRefuses) {
  Bus bus;
  const auto ours = Communicator::make(bus, world()).value();
  const Hooks<TorchComm> comm(ours);
  int calls = 0, posts = 0;
  auto handle = comm->registerPreHook([&](std::size_t, const auto&) { ++calls; });
  (void)comm->registerPostHook([&](std::size_t, const stand_in::PostHookArgs& args) {
    using Post = TorchComm::Post;
    EXPECT_EQ(std::get<Post::AllReducePostHookArgs>(args).work.lock(), nullptr);
    ++posts;
  });
  const auto issuing = ours.issue(all_reduced());
  EXPECT_FALSE(issuing);
  EXPECT_EQ(issuing.reason().view(),
            "a hook for torchcomms' tensors is on a communicator without them; give Hooks a "
            "function that makes them");
  handle->remove();
  EXPECT_TRUE(ours.run(all_reduced(), [](const Operation&) {}));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(posts, 2);
}

TEST(TorchcommsHooksTest, WhatTorchcommsDoesNotHavePassesItsHooksBy) {
  Bus bus;
  const auto ours = Communicator::make(bus, world()).value();
  const Hooks<TorchComm, MakeTensor> comm(ours);
  int calls = 0;
  (void)comm->registerPreHook([&](std::size_t, const auto&) { ++calls; });
  (void)comm->registerPostHook([&](std::size_t, const auto&) { ++calls; });
  EXPECT_TRUE(ours.run(collective::Other{.op = "exclusive_scan"}, [](const Operation&) {}));
  EXPECT_EQ(calls, 0);
}

TEST(TorchcommsHooksTest, WhereNoHookCanBeRegisteredTheCallThrowsTheReason) {
  Bus bus;
  const auto ours = Communicator::make(bus, world()).value();
  ours.end();
  EXPECT_THROW((void)Hooks<TorchComm>(ours)->registerAbortHook([] {}), Refused);
}

}  // namespace
}  // namespace ringmain::tests
