// Wrong: a handle whose event is over is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result stop(void* handle) override {
    return release(handle) ? abi::kSuccess : abi::kInvalidArgument;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
