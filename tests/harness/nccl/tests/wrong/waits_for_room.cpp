// Wrong: where it has no room for another event, startEvent waits until one ends.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void*, void** handle, const Begun& begun) override {
    do {
      *handle = claim(begun.type);
    } while (*handle == nullptr && begun.type <= abi::all_types(7));
    return abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
