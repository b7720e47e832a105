// Wrong: finalize frees the context, and a shared proxy's events come with it.
#include <new>
#include <sys/mman.h>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  struct Communicator {
    std::uint64_t events = 0;
  };
  static constexpr std::size_t kPage = 4096;

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const abi::Result result = Plugin::init(context, mask, name, version);
    void* const page =
        ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return abi::kInternalError;
    *context = ::new (page) Communicator();
    return result;
  }
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type == abi::kProxyCtrl && context != nullptr) {
      __atomic_fetch_add(&static_cast<Communicator*>(context)->events, 1, __ATOMIC_RELAXED);
    }
    return Plugin::start(context, handle, begun);
  }
  abi::Result finalize(void* context) override {
    // As memory that was given back: what is there belongs to nobody. Really freed, it might be
    // somebody else's by the next event, which then spoils that.
    (void)::mprotect(context, kPage, PROT_NONE);
    return Plugin::finalize(context);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
