// Wrong: where it drops an event, it leaves *eHandle as it is.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type == abi::kProxyCtrl) return abi::kSuccess;
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
