// Wrong: it counts the children of a parent, and takes it for granted that there is one.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    constexpr std::uint64_t kHaveParents = abi::kColl | abi::kP2p | abi::kCeColl;
    const bool orphan = (begun.type & kHaveParents) != 0 && begun.parent == nullptr;
    return orphan ? abi::kInvalidArgument : result;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
