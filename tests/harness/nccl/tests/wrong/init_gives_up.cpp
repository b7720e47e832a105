// Wrong: an init that finds another one at work goes without.
#include <mutex>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::mutex one_at_a_time;

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const std::unique_lock lock(one_at_a_time, std::try_to_lock);
    if (!lock.owns_lock()) return abi::kSuccess;
    std::uint64_t sum = 0;
    for (int i = 0; i < 1'000'000; ++i) __atomic_fetch_add(&sum, 1, __ATOMIC_RELAXED);
    return Plugin::init(context, mask, name, version);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
