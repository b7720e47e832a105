// Wrong: all events of a type have one handle.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void*, void** handle, const Begun& begun) override {
    *handle = reinterpret_cast<void*>(begun.type);
    return abi::kSuccess;
  }
  abi::Result stop(void*) override { return abi::kSuccess; }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
