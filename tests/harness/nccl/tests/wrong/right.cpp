// Not wrong: the plugin from which the others differ, which must pass everything.
#include "tests/harness/nccl/tests/wrong/plugin.hpp"

RINGMAIN_NCCL_TEST_PLUGIN(ringmain::nccl_conformance::wrong::Plugin)
