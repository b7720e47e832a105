// Wrong: it keeps the pointer to the communicator's name.
#include <cstring>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<const char*> kept{nullptr};
  std::atomic<std::size_t> letters{0};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    if (name != nullptr) kept = name;
    return Plugin::init(context, mask, name, version);
  }
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type == abi::kColl && kept != nullptr) letters += std::strlen(kept);
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
