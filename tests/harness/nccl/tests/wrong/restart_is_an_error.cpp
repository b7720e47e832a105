// Wrong: a step that begins again before its end is answered with an error.
#include <map>
#include <mutex>
#include <utility>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::mutex lock;
  std::map<std::pair<void*, int>, void*> steps;

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    if (begun.type != abi::kProxyStep) return result;
    const int step = static_cast<const abi::DescriptorV7*>(begun.descriptor)->proxy_step.step;
    const std::lock_guard guard(lock);
    void* const before = std::exchange(steps[{begun.parent, step}], *handle);
    return live(before) ? abi::kInvalidArgument : abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
