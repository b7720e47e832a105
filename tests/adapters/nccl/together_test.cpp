// The wrapper and the plugin in one process: has each operation one id, one beginning and one end?
//
// The stand-in's AllReduce and Broadcast tell the plugin what NCCL's would.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/nccl/plugin_driver.hpp"
#include "tests/adapters/nccl/wrapper_fixture.hpp"

namespace ringmain::tests {
namespace {

/// What the functions below tell, and where what they enqueued is.
struct Front {
  const nccl::Driver* driver = nullptr;
  std::vector<void*> operations;
} front;

nccl::ncclResult_t tell(const char* func) {
  void* const group = front.driver->group_api();
  void* const call = front.driver->coll_api(group, func);
  front.driver->stop(call);
  void* const plan = front.driver->plan();
  void* const operation = front.driver->coll(call, plan, 1, func);
  front.driver->stop(operation);
  front.driver->stop(plan);
  front.driver->stop(group);
  front.operations.push_back(operation);
  return nccl::ncclSuccess;
}
nccl::ncclResult_t told_all_reduce(const void*, void*, std::size_t, nccl::ncclDataType_t,
                                   nccl::ncclRedOp_t, nccl::ncclComm_t, nccl::cudaStream_t) {
  return tell("AllReduce");
}
/// From 2.29 on nothing but the call is told.
nccl::ncclResult_t told_broadcast(const void*, void*, std::size_t, nccl::ncclDataType_t, int,
                                  nccl::ncclComm_t, nccl::cudaStream_t) {
  void* const group = front.driver->group_api();
  front.driver->stop(front.driver->coll_api(group, "Broadcast"));
  front.driver->stop(group);
  return nccl::ncclSuccess;
}

class TogetherTest : public OperationsTest {
 protected:
  TogetherTest() {
    auto loaded = nccl::load_functions(nullptr);
    EXPECT_TRUE(loaded) << loaded.error().message;
    nccl::Functions functions = loaded.value();
    const auto put = [&](nccl::Function which, auto* function) {
      functions.at[static_cast<std::size_t>(which)] =
          reinterpret_cast<nccl::AnyFunction*>(function);
    };
    put(nccl::Function::AllReduce, &told_all_reduce);
    put(nccl::Function::Broadcast, &told_broadcast);
    nccl::use_functions(functions);
  }
  ~TogetherTest() override {
    if (comm_ != nullptr) destroy(comm_);
    driver_.reset();
    source_ = {};
    front = {};
    nccl::use_functions(nccl::load_functions(nullptr).value());
  }
  void begin() {
    nccl::Options options;
    options.kernel_channels = nccl::KernelChannels::always;
    auto made_source = nccl::Source::attach(bus_, options);
    ASSERT_TRUE(made_source) << made_source.error().message;
    source_ = std::move(made_source).value();
    attach();
    comm_ = made("dp");
    driver_ = std::make_unique<nccl::Driver>(table_, "dp", 4, 1, 1);
    front.driver = driver_.get();
  }
  void kernel(std::size_t which) {
    driver_->kernel_stop(driver_->kernel(front.operations.at(which), 0, 1000), 2000);
  }

  nccl::PluginTable table_{6};
  nccl::Source source_;
  std::unique_ptr<nccl::Driver> driver_;
  nccl::ncclComm_t comm_ = nullptr;
};

TEST_F(TogetherTest, TheWrapperIssuesAndThePluginSaysTheEndUnderTheSameId) {
  const auto channels = bus_.heard<nccl::KernelChannel>();
  const auto enqueued = bus_.heard<nccl::Operation>();
  begin();
  for (int times = 0; times < 3; ++times) EXPECT_EQ(all_reduce(comm_), nccl::ncclSuccess);
  (void)bus_.deliver();
  ASSERT_EQ(issued_.size(), 3u);
  EXPECT_EQ(completed_.size(), 0u);
  EXPECT_EQ(open(), 3u);  // their ends are promised
  for (const std::size_t which : {1U, 0U, 2U}) kernel(which);
  (void)bus_.deliver();
  ASSERT_EQ(completed_.size(), 3u);
  EXPECT_EQ(failed_.size(), 0u);
  EXPECT_EQ(open(), 0u);
  for (std::size_t which = 0; which < 3; ++which)
    EXPECT_EQ(enqueued[which].op_id, issued_[which].op_id);
  EXPECT_EQ(completed_[0].op_id, issued_[1].op_id);
  EXPECT_EQ(completed_[1].op_id, issued_[0].op_id);
}

TEST_F(TogetherTest, WhereNoKernelIsHeardNoEndIsPromisedAndNothingStaysOpen) {
  begin();
  EXPECT_EQ(all_reduce(comm_), nccl::ncclSuccess);
  (void)bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  EXPECT_EQ(completed_.size(), 0u);
  EXPECT_EQ(open(), 0u);
}

TEST_F(TogetherTest, ABroadcastsEndIsNotPromisedAsNothingOfItIsTold) {
  const auto channels = bus_.heard<nccl::KernelChannel>();
  begin();
  static float data[2];
  EXPECT_EQ(nccl::Broadcast(&data[0], &data[1], 2, nccl::ncclFloat32, 0, comm_, stream_of(5)),
            nccl::ncclSuccess);
  (void)bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  EXPECT_EQ(open(), 0u);
}

/// An error after the call was told, or a kernel of which NCCL tells nothing.
nccl::ncclResult_t told_call_alone(const void*, void*, std::size_t, nccl::ncclDataType_t,
                                   nccl::ncclRedOp_t, nccl::ncclComm_t, nccl::cudaStream_t) {
  void* const group = front.driver->group_api();
  front.driver->stop(front.driver->coll_api(group, "AllReduce"));
  front.driver->stop(group);
  return nccl::ncclSuccess;
}

TEST_F(TogetherTest, APromiseIsKeptWhereTheOperationNeverComes) {
  const auto channels = bus_.heard<nccl::KernelChannel>();
  begin();
  nccl::Functions functions = nccl::load_functions(nullptr).value();
  functions.at[static_cast<std::size_t>(nccl::Function::AllReduce)] =
      reinterpret_cast<nccl::AnyFunction*>(&told_call_alone);
  nccl::use_functions(functions);
  for (int i = 0; i < 1030; ++i) EXPECT_EQ(all_reduce(comm_), nccl::ncclSuccess);
  (void)bus_.deliver();
  EXPECT_EQ(open(), 1024u);
  EXPECT_EQ(failed_.size(), 6u);  // so many came since
  driver_->finalize();
  (void)bus_.deliver();
  EXPECT_EQ(open(), 0u);
  EXPECT_EQ(failed_.size(), 1030u);
}

TEST_F(TogetherTest, WhatWasPromisedHasFailedWhenTheSourceIsDetached) {
  const auto channels = bus_.heard<nccl::KernelChannel>();
  begin();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all_reduce(comm_), nccl::ncclSuccess);
  nccl::Functions functions = nccl::load_functions(nullptr).value();
  functions.at[static_cast<std::size_t>(nccl::Function::AllReduce)] =
      reinterpret_cast<nccl::AnyFunction*>(&told_call_alone);
  nccl::use_functions(functions);
  EXPECT_EQ(all_reduce(comm_), nccl::ncclSuccess);  // its operation has not come yet
  EXPECT_EQ(open(), 4u);
  kernel(0);
  EXPECT_EQ(source_.detach(), Detached::done);
  EXPECT_EQ(open(), 0u);
  for (std::size_t which = 0; which < 3; ++which) kernel(which);
  (void)bus_.deliver();
  EXPECT_EQ(completed_.size(), 1u);
  ASSERT_EQ(failed_.size(), 3u);
  for (const collective::Failed& one : failed_) {
    EXPECT_EQ(one.how, collective::How::unknown);
    EXPECT_EQ(one.reason.view(),
              "the source of NCCL's events was detached before its end was seen");
  }
  EXPECT_EQ(collective::Ledger::of(bus_).value()->figures().late, 0u);
}

}  // namespace
}  // namespace ringmain::tests
