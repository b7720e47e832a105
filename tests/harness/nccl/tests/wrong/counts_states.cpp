// Wrong: it has room for 64 states of an event.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::array<std::atomic<int>, 4096> states{};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    const abi::Result result = Plugin::start(context, handle, begun);
    states[place(*handle)] = 0;
    return result;
  }
  abi::Result record(void* handle, int, const abi::StateArgs* args) override {
    if (args == nullptr || !live(handle)) return abi::kSuccess;
    return ++states[place(handle)] <= 64 ? abi::kSuccess : abi::kInternalError;
  }

 private:
  std::size_t place(void* handle) const {
    return reinterpret_cast<std::uintptr_t>(handle) / 2 % states.size();
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
