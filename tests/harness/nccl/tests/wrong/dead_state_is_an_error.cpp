// Wrong: a state of an event that is over is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result record(void* handle, int, const abi::StateArgs*) override {
    return live(handle) ? abi::kSuccess : abi::kInvalidArgument;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
