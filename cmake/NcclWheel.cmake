# Where is the NCCL that tests load, and whose header they compare ours with, if it is here at all?
#
# RINGMAIN_NCCL is a folder that ./dev test fills, build/nccl/VERSION, or another with lib/libnccl.so.2 and include/nccl.h. A test
# takes that of the environment's RINGMAIN_NCCL, if it is set, before the one that was found here (./dev test --nccl VERSION).
# Tests with the label nccl belong to ringmain_nccl_tests, which has what they need.
file(STRINGS "${PROJECT_SOURCE_DIR}/tools/nccl_wheels.txt" ringmain_nccl_wheels REGEX "^[0-9]")
list(GET ringmain_nccl_wheels 0 ringmain_nccl_version)
string(REGEX REPLACE " .*" "" ringmain_nccl_version "${ringmain_nccl_version}")
find_path(RINGMAIN_NCCL NAMES lib/libnccl.so.2
  HINTS "${PROJECT_SOURCE_DIR}/build/nccl/${ringmain_nccl_version}"
  DOC "folder with lib/libnccl.so.2 and include/nccl.h; without it no test loads NCCL")
if(NOT TARGET ringmain_nccl_tests)
  add_custom_target(ringmain_nccl_tests)
endif()
