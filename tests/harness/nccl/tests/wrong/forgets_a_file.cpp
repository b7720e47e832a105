// Wrong: each communicator opens a file that nobody closes.
#include <fcntl.h>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result init(void** context, int* mask, const char* name, int version) override {
    (void)::open("/dev/null", O_WRONLY | O_CLOEXEC);
    return Plugin::init(context, mask, name, version);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
