// Wrong: it serves one communicator at a time, and answers the next with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<int> served{0};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    if (served.fetch_add(1) != 0) return abi::kInternalError;
    return Plugin::init(context, mask, name, version);
  }
  abi::Result finalize(void* context) override {
    served = 0;
    return Plugin::finalize(context);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
