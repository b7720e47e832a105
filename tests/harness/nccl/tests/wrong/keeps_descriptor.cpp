// Wrong: it keeps the pointer to a descriptor, and reads its text at the end.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<const abi::DescriptorV7*> kept{nullptr};
  std::atomic<int> letters{0};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type == abi::kCollApi) kept = static_cast<const abi::DescriptorV7*>(begun.descriptor);
    return Plugin::start(context, handle, begun);
  }
  abi::Result finalize(void* context) override {
    if (kept != nullptr) letters += *kept.load()->coll_api.func;
    return Plugin::finalize(context);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
