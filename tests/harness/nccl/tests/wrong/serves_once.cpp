// Wrong: a second first communicator, in a library that stayed mapped, is unforeseen.
#include <cstdlib>

#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  std::atomic<int> communicators{0};
  std::atomic<bool> set{false};

  abi::Result init(void** context, int* mask, const char* name, int version) override {
    if (communicators.fetch_add(1) == 0 && set.exchange(true)) std::abort();
    return Plugin::init(context, mask, name, version);
  }
  abi::Result finalize(void* context) override {
    communicators.fetch_sub(1);
    return Plugin::finalize(context);
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
