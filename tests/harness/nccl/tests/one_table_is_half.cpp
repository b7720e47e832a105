// Wrong: of one of its versions a function is missing.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

namespace {
using namespace ringmain::nccl_conformance::wrong;
namespace abi = ringmain::nccl::abi;
}  // namespace

ringmain::nccl_conformance::wrong::Plugin& ringmain::nccl_conformance::wrong::plugin() {
  static Plugin only;
  return only;
}

extern "C" {
RINGMAIN_NCCL_TEST_TABLE(5, TableV5, DescriptorV5, init<5>)
__attribute__((visibility("default"))) abi::TableV6 ncclProfiler_v6 = {
    "test", &init<6>, &start<abi::DescriptorV6>, &stop, &record, nullptr};
}
