// Wrong: where it has no room for another event, startEvent returns an error.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void*, void** handle, const Begun& begun) override {
    *handle = claim(begun.type);
    const bool known = begun.type <= abi::all_types(7);
    return *handle == nullptr && known ? abi::kInternalError : abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
