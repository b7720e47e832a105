// Are torchcomms' operations reported as they happen, and can our hooks hang on them? On the
// stand-in.
#include "adapters/sources/collective/torchcomms.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/collective/torchcomms_stand_in_comm.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::Completed;
using collective::CompletionHookArgs;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::How;
using collective::Issued;
using collective::OpName;
using collective::Outcome;
using collective::PostHookArgs;
using collective::PreHookArgs;
using collective::Started;
using collective::Wait;
using collective::torchcomms::attach;
using collective::torchcomms::Refused;
using collective::torchcomms::Source;
using stand_in::PlainWork;
using stand_in::TorchComm;
using stand_in::TorchWork;
using Status = PlainWork::WorkStatus;

class TorchcommsTest : public testing::Test {
 protected:
  std::shared_ptr<TorchWork> all_reduce(TorchComm& comm) {
    return comm.all_reduce(four_, stand_in::ReduceOp::RedOpType::SUM, true);
  }
  std::shared_ptr<TorchWork> all_reduce() { return all_reduce(*theirs_); }
  Bus bus_;
  Heard<Issued> issued_{bus_};
  Heard<Completed> completed_{bus_};
  Heard<Failed> failed_{bus_};
  stand_in::Tensor four_{{2, 2}};
  std::shared_ptr<TorchComm> theirs_ = std::make_shared<TorchComm>("main", true);
  Source source_ = std::move(attach(bus_, theirs_).value());
  const Communicator ours_ = source_.communicator();
};

TEST_F(TorchcommsTest, AnOperationIsSaidFromItsPreHookToItsWorksEnd) {
  Heard<Started> started(bus_);
  Heard<Wait> waits(bus_);
  const auto work = all_reduce();
  EXPECT_TRUE(completed_.all().empty());  // the call has returned, and that is no end
  work->set_status(Status::INPROGRESS);
  work->wait();
  work->set_status(Status::COMPLETED);
  work->set_status(Status::ERROR);  // said once
  ASSERT_EQ(issued_.all().size(), 1u);
  ASSERT_EQ(started.all().size(), 1u);
  ASSERT_EQ(completed_.all().size(), 1u);
  EXPECT_TRUE(failed_.all().empty());
  const Issued issued = issued_.all()[0];
  EXPECT_EQ(issued.op.view(), "all_reduce");
  EXPECT_EQ(issued.group.view(), "main");
  EXPECT_EQ(issued.backend.view(), "gloo");
  EXPECT_EQ(issued.source.view(), "torchcomms");
  EXPECT_EQ(issued.dtype.view(), "float32");
  EXPECT_EQ(issued.bytes, 16u);
  EXPECT_EQ(issued.in_elements, 4u);
  EXPECT_EQ(issued.rank, 0);
  EXPECT_EQ(issued.group_size, 1);
  EXPECT_EQ(issued.sequence, 1u);
  EXPECT_TRUE(issued.asynchronous);
  EXPECT_EQ(started.all()[0].op_id, issued.op_id);
  EXPECT_EQ(completed_.all()[0].op_id, issued.op_id);
  ASSERT_EQ(waits.all().size(), 2u);
  EXPECT_EQ(waits.all()[1].op_id, issued.op_id);
}

TEST_F(TorchcommsTest, ItEndsAsItsWorkDoes) {
  all_reduce()->set_status(Status::TIMEDOUT);
  all_reduce()->set_status(Status::ERROR);
  (void)all_reduce();  // nobody holds the work, so nobody will say its end
  theirs_->backend = [](TorchWork& work) { work.set_status(Status::COMPLETED); };
  (void)all_reduce();  // over before the post hook
  ASSERT_EQ(failed_.all().size(), 3u);
  EXPECT_EQ(failed_.all()[0].how, How::timed_out);
  EXPECT_EQ(failed_.all()[1].how, How::error);
  EXPECT_EQ(failed_.all()[2].how, How::unknown);
  EXPECT_EQ(completed_.all().size(), 1u);
}

TEST_F(TorchcommsTest, ARevisionWhoseWorkHasNoHooksSaysNoEnd) {
  const auto theirs = std::make_shared<stand_in::BasicTorchComm<PlainWork>>("older");
  const Source source = std::move(attach(bus_, theirs).value());
  const auto work = theirs->barrier(false);
  EXPECT_FALSE(source.communicator().supports_abort());
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::unknown);
}

TEST_F(TorchcommsTest, ARefusalReachesTheCallerAndTheBackendIsNotCalled) {
  int calls = 0;
  std::vector<Outcome> outcomes;
  theirs_->backend = [&](TorchWork&) { ++calls; };
  auto guard = ours_.pre_hook([](const PreHookArgs& args) {
    EXPECT_EQ(std::get<collective::AllReduce>(*args.arguments).tensor.sizes.size(), 2u);
    return Verdict::veto(Name("NaN in the input"));
  });
  const auto post =
      ours_.post_hook([&](const PostHookArgs& args) { outcomes.push_back(args.outcome); });
  try {
    (void)all_reduce();
    ADD_FAILURE() << "it was not refused";
  } catch (const Refused& refused) {
    EXPECT_STREQ(refused.what(), "NaN in the input");
  }
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::vetoed);
  EXPECT_EQ(guard.value().reset(), Detached::done);
  EXPECT_NE(all_reduce(), nullptr);
  EXPECT_EQ(outcomes, (std::vector{Outcome::refused, Outcome::issued}));
}

TEST_F(TorchcommsTest, WhatHadNoPostHookIsOverWhenTheNextCallBegins) {
  std::vector<Outcome> outcomes;
  std::vector<std::string> reasons;
  const auto post = ours_.post_hook([&](const PostHookArgs& args) {
    outcomes.push_back(args.outcome);
    reasons.emplace_back(args.reason.view());
  });
  theirs_->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  EXPECT_THROW((void)all_reduce(), std::runtime_error);
  EXPECT_TRUE(outcomes.empty());
  theirs_->backend = [](TorchWork&) {};
  const auto work = all_reduce();
  ASSERT_EQ(outcomes, (std::vector{Outcome::threw, Outcome::issued}));
  EXPECT_EQ(reasons[0],
            "torchcomms called no post hook: its backend threw, or a hook of its own refused");
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].op_id, issued_.all()[0].op_id);
  EXPECT_EQ(failed_.all()[0].how, How::error);
  EXPECT_EQ(issued_.all().size(), 2u);  // the second one is no part of the first
}

TEST_F(TorchcommsTest, WhatHadNoPostHookHidesNoOtherCommunicatorsOperation) {
  const auto other = std::make_shared<TorchComm>("other");
  const Source source = std::move(attach(bus_, other).value());
  theirs_->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  EXPECT_THROW((void)all_reduce(), std::runtime_error);
  const auto work = all_reduce(*other);
  EXPECT_EQ(issued_.all().size(), 2u);
  EXPECT_TRUE(failed_.all().empty());  // it might be a part of the first
}

TEST_F(TorchcommsTest, ACallInsideAnothersBackendIsAnOperationAndBothReturn) {
  const auto inner = std::make_shared<TorchComm>("inner");
  const Source source = std::move(attach(bus_, inner).value());
  int posts = 0, broken = 0;
  const auto post = ours_.post_hook([&](const PostHookArgs& args) {
    EXPECT_EQ(args.outcome, Outcome::issued);
    ++posts;
  });
  const auto other = source.communicator().post_hook(
      [&](const PostHookArgs& args) { broken += args.outcome == Outcome::threw ? 1 : 0; });
  theirs_->backend = [&](TorchWork&) { (void)all_reduce(*inner); };
  (void)all_reduce();
  inner->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  theirs_->backend = [&](TorchWork&) {
    EXPECT_THROW((void)all_reduce(*inner), std::runtime_error);
  };
  (void)all_reduce();
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(broken, 1);  // what was inside the second one ended with it, at the latest
  EXPECT_EQ(issued_.all().size(), 4u);
}

TEST_F(TorchcommsTest, WhatHadNoPostHookIsOverWhenItsThreadEnds) {
  theirs_->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  std::thread([&] { EXPECT_THROW((void)all_reduce(), std::runtime_error); }).join();
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::error);
}

TEST_F(TorchcommsTest, APostHookThatThrowsCostsTheCallerNothing) {
  const auto post =
      ours_.post_hook([](const PostHookArgs&) { throw std::runtime_error("a hook's own"); });
  EXPECT_NE(all_reduce(), nullptr);
}

TEST_F(TorchcommsTest, PartsAreAttachedWithTheHooksOfTheirWhole) {
  Heard<Group> groups(bus_);
  std::vector<std::string> seen;
  const auto hook = ours_.pre_hook([&](const PreHookArgs& args) {
    seen.emplace_back(args.communicator->name().view());
    return Verdict::allow();
  });
  std::vector<std::string> parts;
  const auto post = ours_.post_hook([&](const PostHookArgs& args) {
    if (args.name != OpName::split) return;
    parts.emplace_back(args.new_comm == nullptr ? "none" : args.new_comm->name().view());
  });
  EXPECT_EQ(theirs_->split({}, "nobody"), nullptr);  // torchcomms calls no post hook
  const auto part = theirs_->split({0}, "half");
  const auto work = all_reduce(*part);
  EXPECT_EQ(parts, (std::vector<std::string>{"none", "half"}));
  EXPECT_EQ(seen, (std::vector<std::string>{"main", "main", "half"}));
  ASSERT_EQ(groups.all().size(), 2u);
  EXPECT_EQ(groups.all()[0].group, Name());
  EXPECT_EQ(groups.all()[1].change, GroupChange::split);
  EXPECT_EQ(groups.all()[1].parent.view(), "main");
  EXPECT_EQ(groups.all()[1].hooks, 2u);
  EXPECT_EQ(groups.all()[1].ranks.view(), "7");
}

TEST_F(TorchcommsTest, FinalizeEndsOurs) {
  OpName last = OpName::other;
  const auto hook = ours_.post_hook([&](const PostHookArgs& args) { last = args.name; });
  const auto work = all_reduce();
  theirs_->finalize();
  EXPECT_EQ(last, OpName::finalize);
  EXPECT_TRUE(ours_.ended());
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::cancelled);
}

TEST_F(TorchcommsTest, ADetachedSourceIsSilentAndTheProgramGoesOn) {
  int calls = 0;
  const auto part = theirs_->split({0}, "half");
  const auto half = Communicator::find(bus_, "half");
  const auto guard = ours_.pre_hook([&](const PreHookArgs&) {
    ++calls;
    return Verdict::veto(Name("no"));
  });
  EXPECT_THROW((void)all_reduce(), Refused);
  EXPECT_FALSE(half.ended());
  source_.detach();
  source_.detach();
  EXPECT_TRUE(ours_.ended());
  EXPECT_TRUE(half.ended());
  const auto before = issued_.all().size();
  EXPECT_NE(all_reduce(), nullptr);
  EXPECT_NE(all_reduce(*part), nullptr);
  EXPECT_NE(theirs_->split({0}, "late"), nullptr);
  EXPECT_EQ(issued_.all().size(), before);
  EXPECT_EQ(calls, 1);
}

TEST_F(TorchcommsTest, OneMayBeDetachedInsideACall) {
  theirs_->backend = [&](TorchWork&) { source_.detach(); };
  EXPECT_NE(all_reduce(), nullptr);
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::cancelled);
}

TEST_F(TorchcommsTest, OursThatEndedRefusesNothingOfTheirs) {
  ours_.end();
  EXPECT_NE(all_reduce(), nullptr);
}

TEST_F(TorchcommsTest, TheirsEndsOurs) {
  source_.release();
  theirs_.reset();
  EXPECT_TRUE(ours_.ended());
}

TEST_F(TorchcommsTest, AnAbortHereIsOneThereAndHooksOfBothAreCalledOnce) {
  std::atomic<int> mine{0}, hers{0};
  const auto hook = ours_.abort_hook([&](const collective::AbortHookArgs&) { ++mine; });
  (void)theirs_->registerAbortHook([&] { ++hers; });
  EXPECT_TRUE(ours_.supports_abort());
  EXPECT_EQ(ours_.abort("rank 3 is lost").how, collective::Aborted::How::done);
  EXPECT_TRUE(theirs_->isAborted());
  EXPECT_EQ(mine, 1);
  EXPECT_EQ(hers, 1);
}

TEST_F(TorchcommsTest, TheirFailureCallsOurAbortHooks) {
  std::vector<std::string> asked;
  const auto hook = ours_
                        .register_abort_hook([&](const collective::AbortHookArgs& args) {
                          asked.emplace_back(args.asked_by.view());
                        })
                        .value();
  theirs_->fail();
  EXPECT_EQ(asked, std::vector<std::string>{"torchcomms"});
  source_.detach();
  theirs_->fail();
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(TorchcommsTest, NothingIsAttachedToNothingOrAStoppedBus) {
  EXPECT_FALSE(attach(bus_, std::shared_ptr<TorchComm>()));
  bus_.stop();
  EXPECT_FALSE(attach(bus_, std::make_shared<TorchComm>("late")));
}

}  // namespace
}  // namespace ringmain::tests
