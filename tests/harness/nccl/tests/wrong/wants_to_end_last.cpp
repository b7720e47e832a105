// Wrong: finalize answers with an error while another communicator is open.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<int> communicators{0};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    ++communicators;
    return Plugin::init(context, mask, name, version);
  }
  abi::Result finalize(void* context) override {
    (void)Plugin::finalize(context);
    return --communicators == 0 ? abi::kSuccess : abi::kInvalidArgument;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
