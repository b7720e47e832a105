// Wrong: a group that ends before its calls' kernels have begun is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<void*> last_group{nullptr};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    if (begun.type == abi::kGroupApi) last_group = *handle;
    return result;
  }
  abi::Result stop(void* handle) override {
    const bool known = release(handle);
    return known && handle == last_group.load() ? abi::kInternalError : abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
