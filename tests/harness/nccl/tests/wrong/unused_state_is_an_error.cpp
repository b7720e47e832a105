// Wrong: a state that it has no use for is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result record(void*, int state, const abi::StateArgs*) override {
    return state == abi::kCtrlIdle ? abi::kInvalidArgument : abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
