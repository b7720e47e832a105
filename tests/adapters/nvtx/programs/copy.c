/* Says a range through the copy of NVTX's headers that this file is compiled with. */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) void RANGE_OF_COPY(void);
void RANGE_OF_COPY(void) {
  nvtxRangePushA(COPY);
  nvtxRangePop();
}
