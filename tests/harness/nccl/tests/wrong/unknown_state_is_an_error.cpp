// Wrong: a state that it does not know is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result record(void*, int state, const abi::StateArgs*) override {
    const bool known = state >= abi::kSendGpuWait && state <= abi::kKernelPhaseStop;
    return known ? abi::kSuccess : abi::kInvalidArgument;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
