// Calls through the wrapper, over the library that stands in for NCCL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "events/collective.hpp"
#include "events/collective_life.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/nccl/nccl.hpp"

#include "tests/adapters/nccl/fake/fake_nccl.hpp"

namespace ringmain::tests {

inline nccl::cudaStream_t stream_of(std::uintptr_t number) {
  return reinterpret_cast<nccl::cudaStream_t>(number);
}
inline fake_nccl::Seen last_seen(const char* name) {
  fake_nccl::Seen last{};
  EXPECT_TRUE(fake_nccl::fake_nccl_last(name, &last)) << name;
  return last;
}

class WrapperTest : public testing::Test {
 protected:
  WrapperTest() {
    fake_nccl::fake_nccl_reset();
    EXPECT_EQ(fake_nccl::fake_nccl_communicators(), 0u);
  }
  ~WrapperTest() override {
    calls_.detach();
    EXPECT_EQ(nccl::detail::thread_state.in_nccl, 0u);
  }
  void attach(const nccl::CallsOptions& options = {}) {
    auto made = nccl::Calls::attach(bus_, options);
    ASSERT_TRUE(made) << made.error().message;
    calls_ = std::move(made).value();
  }
  /// This process's rank of `size`; `blocking` false: everything is in progress first.
  nccl::ncclComm_t made(const char* name, int rank = 1, int size = 4, bool blocking = true) {
    nccl::ncclConfig_t config;
    config.commName = name;
    config.blocking = blocking ? 1 : 0;
    nccl::ncclUniqueId id{};
    nccl::ncclComm_t comm = nullptr;
    const auto result = nccl::CommInitRankConfig(&comm, size, id, rank, &config);
    EXPECT_EQ(result, blocking ? nccl::ncclSuccess : nccl::ncclInProgress);
    return comm;
  }
  nccl::ncclComm_t settled(nccl::ncclComm_t comm, int result = 0) {
    fake_nccl::fake_nccl_settle(comm, result);
    nccl::ncclResult_t now{};
    EXPECT_EQ(nccl::CommGetAsyncError(comm, &now), nccl::ncclSuccess);
    EXPECT_EQ(static_cast<int>(now), result);
    return comm;
  }
  static nccl::ncclResult_t all_reduce(nccl::ncclComm_t comm, std::size_t count = 256,
                                       std::uintptr_t stream = 5) {
    static float data[2];
    return nccl::AllReduce(&data[0], &data[1], count, nccl::ncclFloat32, nccl::ncclSum, comm,
                           stream_of(stream));
  }
  void destroy(nccl::ncclComm_t comm) { EXPECT_EQ(nccl::CommDestroy(comm), nccl::ncclSuccess); }
  [[nodiscard]] std::uint32_t open() {
    return collective::Ledger::of(bus_).value()->figures().open;
  }
  [[nodiscard]] collective::Communicator communicator(const char* name) {
    return collective::Communicator::find(bus_, name);
  }

  TestBus bus_;
  nccl::Calls calls_;
};

/// The same, and what is said of operations.
class OperationsTest : public WrapperTest {
 protected:
  Heard<collective::Issued> issued_ = bus_.heard<collective::Issued>();
  Heard<collective::Failed> failed_ = bus_.heard<collective::Failed>();
  Heard<collective::Completed> completed_ = bus_.heard<collective::Completed>();
};

}  // namespace ringmain::tests
