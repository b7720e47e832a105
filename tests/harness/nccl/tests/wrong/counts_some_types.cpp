// Wrong: it has a counter for each type that its author knew, and writes to that of any other.
#include <bit>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  enum : std::size_t { kKnown = 8 };  // up to v4
  std::array<std::atomic<int>, kKnown> counts{};
  std::array<std::atomic<int>*, 64> of_type{};

  Wrong() {
    for (std::size_t i = 0; i < kKnown; ++i) of_type[i] = &counts[i];
  }
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    ++*of_type[static_cast<std::size_t>(std::countr_zero(begun.type))];
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
