// Completions over the libraries that stand in for NVIDIA's, whose streams can be held.
#pragma once
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/completions.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/engine/eventually.hpp"

namespace ringmain::cuda {

inline int code(auto result) {
  return static_cast<int>(result);
}

/// What was said, in order.
class Heard {
 public:
  explicit Heard(Bus& bus)
      : subscription_(bus.channel<Completion>().subscribe([this](const Completion& completion) {
          const std::lock_guard lock(mutex_);
          all_.push_back(completion);
        })) {}
  [[nodiscard]] std::vector<Completion> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] bool await(std::size_t many) const {
    return tests::eventually([&] { return size() >= many; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Completion> all_;
  Subscription subscription_;
};

class CompletionsFixture : public testing::Test {
 protected:
  CompletionsFixture() {
    fake_cuda_reset();
    fake_cupti_reset();
    EXPECT_EQ(code(cudaFree(nullptr)), 0);
    EXPECT_EQ(code(cudaStreamCreate(&stream)), 0);
  }
  ~CompletionsFixture() override {
    fake_cuda_script(nullptr, nullptr);
    fake_cuda_finish(0);
    fake_cuda_settle();
    (void)cudaStreamDestroy(stream);
    EXPECT_EQ(fake_cuda_in_host_functions(), 0U);
    EXPECT_EQ(fake_cuda_stray_writes(), 0U);
    EXPECT_EQ(fake_cuda_forbidden(), 0U);
  }
  /// A GPU as good as new.
  static void reset_device() {
    (void)cuDevicePrimaryCtxReset_v2(0);
    EXPECT_EQ(code(cudaFree(nullptr)), 0);
  }
  Completions made(CompletionsOptions options = {}) {
    if (options.beyond_ns == CompletionsOptions{}.beyond_ns)
      options.beyond_ns = std::chrono::minutes(10);  // however busy the machine is
    auto result = Completions::make(bus, options);
    EXPECT_TRUE(result) << result.error().message;
    return result ? std::move(result).value() : Completions();
  }
  /// The figures balance, and each ticket is heard once, in order within its lane.
  void expect_balanced(const Completions& completions, const Heard& heard) {
    EXPECT_TRUE(bus.flush(std::chrono::minutes(10)));
    const CompletionFigures now = completions.figures();
    EXPECT_EQ(now.armed, now.completed + now.failed + now.abandoned + now.pending);
    EXPECT_EQ(now.refused, 0U);
    std::uint64_t ends[3] = {};
    std::vector<std::uint64_t> last(CompletionsOptions::kLanesMax + 1025);
    for (const Completion& each : heard.all()) {
      ++ends[static_cast<int>(each.outcome)];
      EXPECT_GT(each.ticket, last[each.lane]);
      last[each.lane] = each.ticket;
      EXPECT_EQ(each.result == 0, each.outcome == Outcome::completed);
    }
    EXPECT_EQ(ends[0], now.completed);
    EXPECT_EQ(ends[1], now.failed);
    EXPECT_EQ(ends[2], now.abandoned);
  }

  cudaStream_t stream = nullptr;
  Bus bus;
};

}  // namespace ringmain::cuda
