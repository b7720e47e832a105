// Wrong: a type that it does not know ends the process.
#include <cstdlib>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void* context, void** handle, const Begun& begun) override {
    if (begun.type > abi::all_types(7)) std::abort();
    return Plugin::start(context, handle, begun);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
