// Wrong: a type of event that it has no use for is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type != abi::kProxyCtrl) return Plugin::start(context, handle, begun);
    *handle = nullptr;
    return abi::kInvalidArgument;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
