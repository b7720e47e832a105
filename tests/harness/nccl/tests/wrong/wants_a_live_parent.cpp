// Wrong: it counts the children of a parent, and takes one that is over for a fault.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    const bool over = begun.parent != nullptr && !begun.foreign && !live(begun.parent);
    return over && begun.type <= abi::kP2p ? abi::kInvalidArgument : result;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
