// Wrong: each communicator takes memory that nobody gives back.
#include <cstdlib>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<void*> last{nullptr};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    last = std::malloc(4096);
    return Plugin::init(context, mask, name, version);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
