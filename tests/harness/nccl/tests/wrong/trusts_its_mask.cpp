// Wrong: under a mask that is clear, the end of an event is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<int*> mask_of_nccl{nullptr};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    mask_of_nccl = mask;
    return Plugin::init(context, mask, name, version);
  }
  abi::Result stop(void* handle) override {
    const bool clear = __atomic_load_n(mask_of_nccl.load(), __ATOMIC_RELAXED) == 0;
    const bool known = release(handle);
    return clear && known ? abi::kInternalError : abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
