// Wrong: it follows a proxy operation's parent, though another process's.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  struct Event {
    std::atomic<std::uint64_t> children{0};
  };
  std::array<Event, 1 << 12> events;  // handles are pointers here, and never go
  std::atomic<std::size_t> taken{0};

  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.foreign && context != nullptr && reinterpret_cast<std::uintptr_t>(context) < 4096 &&
        begun.parent != nullptr) {
      // The context is ours, so it takes the parent for its own, too.
      static_cast<Event*>(begun.parent)->children.fetch_add(1);
    }
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
