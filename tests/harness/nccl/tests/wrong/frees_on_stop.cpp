// Wrong: a handle is a pointer, which the stop of its event frees, however often it comes.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;

struct Wrong : Plugin {
  abi::Result start(void*, void** handle, const Begun& begun) override {
    *handle = new Begun(begun);
    return abi::kSuccess;
  }
  abi::Result stop(void* handle) override {
    delete static_cast<Begun*>(handle);
    return abi::kSuccess;
  }
};
}  // namespace

RINGMAIN_NCCL_TEST_PLUGIN(Wrong)
