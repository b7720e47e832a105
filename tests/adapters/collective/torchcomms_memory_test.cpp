// Does a thread that lacks memory in a call of torchcomms' go on, and does a call without a post
// hook end with the process?
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/collective/torchcomms.hpp"

#include "tests/adapters/collective/torchcomms_stand_in_comm.hpp"
#include "tests/process/allocation_faults.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

using collective::Failed;
using collective::Issued;
namespace torchcomms = collective::torchcomms;
using stand_in::TorchComm;
using stand_in::TorchWork;

class TorchcommsMemoryTest : public testing::Test {
 protected:
  void all_reduce() {
    try {
      (void)theirs_->all_reduce(four_, stand_in::ReduceOp::RedOpType::SUM, true);
    } catch (const std::runtime_error&) {  // the backend's, and so there is no post hook
    } catch (const std::bad_alloc&) {
    }
  }

  TestBus bus_;
  std::vector<Issued> issued_;
  std::vector<Failed> failed_;
  Subscription issues_ =
      bus_.channel<Issued>().subscribe([this](const Issued& one) { issued_.push_back(one); });
  Subscription failures_ =
      bus_.channel<Failed>().subscribe([this](const Failed& one) { failed_.push_back(one); });
  stand_in::Tensor four_{{2, 2}};
  std::shared_ptr<TorchComm> theirs_ = std::make_shared<TorchComm>("main", true);
  torchcomms::Source source_ = std::move(torchcomms::attach(bus_, theirs_).value());
};

TEST_F(TorchcommsMemoryTest, EachAllocationOfAThreadsFirstCallMayFail) {
  theirs_->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  long k = 0;
  for (bool reached = true; reached && !HasFailure();) {
    ++k;
    issued_.clear();
    failed_.clear();
    std::thread([&] {
      fail_own_allocations(k, 1);
      all_reduce();
      reached = heal_allocations();
    }).join();
    (void)bus_.deliver();
    // An event for which there was no memory is counted.
    EXPECT_LE(issued_.size(), failed_.size()) << "without an end, allocation " << k;
    EXPECT_LE(failed_.size(), 1) << k;
  }
  EXPECT_GT(k, 1);
  EXPECT_EQ(issued_.size(), 1);
}

/// As for what stands at the end of main.
TEST_F(TorchcommsMemoryTest, WhatHadNoPostHookInTheMainThreadIsOverWhenTheProcessEnds) {
  theirs_->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
  const std::string end = in_child([&](Findings& found) {
    static Bus& bus = *new Bus;  // outlives main
    static int said = 0;
    (void)std::atexit([] {
      if (said != 1) ::_exit(3);
    });
    static const auto failures =
        bus.channel<Failed>().subscribe_inline([](const Failed&) { ++said; });
    const auto other = std::make_shared<TorchComm>("in the child", true);
    static const auto source =
        std::make_unique<torchcomms::Source>(torchcomms::attach(bus, other).value());
    other->backend = [](TorchWork&) { throw std::runtime_error("no route"); };
    try {
      (void)other->all_reduce(four_, stand_in::ReduceOp::RedOpType::SUM, true);
    } catch (const std::runtime_error&) {
    }
    found.expect(said == 0, "it is over too early");
  });
  EXPECT_EQ(end, kFine);
}

}  // namespace
}  // namespace ringmain::tests
