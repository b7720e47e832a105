// Wrong: finalize answers with an error where events are open.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<int> open{0};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    if (*handle != nullptr) ++open;
    return result;
  }
  abi::Result stop(void* handle) override {
    if (release(handle)) --open;
    return abi::kSuccess;
  }
  abi::Result finalize(void* context) override {
    const bool all_ended = open.exchange(0) == 0;
    (void)Plugin::finalize(context);
    return all_ended ? abi::kSuccess : abi::kInternalError;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
