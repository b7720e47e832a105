// Wrong: the newest table, which NCCL takes, has no function for states.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

RINGMAIN_NCCL_TEST_PLUGIN(ringmain::nccl_conformance::wrong::Plugin)

namespace {
__attribute__((constructor)) void leave_out() {
  ncclProfiler_v7.record_event_state = nullptr;
}
}  // namespace
