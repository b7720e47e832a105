// Wrong: it copies the communicator's name without a look whether there is one.
#include <string>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result init(void** context, int* mask, const char* name, int version) override {
    const volatile char first = *name;
    (void)first;
    return Plugin::init(context, mask, name, version);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
