// Wrong: it asks for types that its version does not have.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const abi::Result result = Plugin::init(context, mask, name, version);
    __atomic_store_n(mask, -1, __ATOMIC_RELAXED);
    return result;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
