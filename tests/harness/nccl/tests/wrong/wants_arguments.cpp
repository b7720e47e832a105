// Wrong: it reads the arguments of each state, though GroupApi's have none.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<std::size_t> bytes{0};

  abi::Result record(void*, int, const abi::StateArgs* args) override {
    bytes += args->proxy_step.trans_size;
    return abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
