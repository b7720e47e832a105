// Wrong: a send's state of a step whose operation is said to receive is answered with an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::array<std::atomic<bool>, kSlots> receives{};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    if (begun.type == abi::kProxyOp) {
      const auto& op = static_cast<const abi::DescriptorV7*>(begun.descriptor)->proxy_op;
      receives[place(*handle)] = op.is_send == 0;
    } else {
      receives[place(*handle)] =
          begun.type == abi::kProxyStep && live(begun.parent) && receives[place(begun.parent)];
    }
    return result;
  }
  abi::Result record(void* handle, int state, const abi::StateArgs*) override {
    const bool sends =
        state == abi::kSendGpuWait || state == abi::kSendWait || state == abi::kSendPeerWait;
    return sends && live(handle) && receives[place(handle)] ? abi::kInternalError : abi::kSuccess;
  }

 private:
  static std::size_t place(void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle) / 2 % kSlots;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
