// Wrong: a context is a pointer, which it follows before it looks whose event it is.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  struct Communicator {
    std::atomic<std::uint64_t> events{0};
  };
  std::array<Communicator, 1 << 16> all;
  std::atomic<std::size_t> taken{0};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const abi::Result result = Plugin::init(context, mask, name, version);
    *context = &all[taken.fetch_add(1) % all.size()];
    return result;
  }
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (context != nullptr) static_cast<Communicator*>(context)->events.fetch_add(1);
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
