// Wrong: finalize frees the context, and a shared proxy's events come with it.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  struct Communicator {
    std::uint64_t* events = new std::uint64_t(0);
    Communicator() = default;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    ~Communicator() { delete events; }
  };

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const abi::Result result = Plugin::init(context, mask, name, version);
    *context = new Communicator();
    return result;
  }
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type == abi::kProxyCtrl && context != nullptr) {
      __atomic_fetch_add(static_cast<Communicator*>(context)->events, 1, __ATOMIC_RELAXED);
    }
    return Plugin::start(context, handle, begun);
  }
  abi::Result finalize(void* context) override {
    delete static_cast<Communicator*>(context);
    return Plugin::finalize(context);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
