/* A training loop: says its steps by ringmain's C interface, or by NVTX where it is built for that,
 * and calls CUDA in each. usage: steps COUNT */
#include "tests/adapters/cuda/programs/calls.h"

#ifdef STEPS_BY_NVTX
#include <nvtx3/nvToolsExt.h>

static void begin(long number) {
  char name[32];
  snprintf(name, sizeof name, "step %ld", number);
  nvtxRangePushA(name);
}
static void end(void) {
  nvtxRangePop();
}
static void open_steps(void) {}
static void close_steps(void) {}
#else
#include "bindings/c/ringmain.h"

static ringmain_bus* bus;
static ringmain_steps* steps;

static void must(ringmain_code code) {
  if (code == RINGMAIN_OK) return;
  puts(ringmain_last_error());
  exit(96);
}
static void begin(long number) {
  must(ringmain_step_begin(steps, (uint64_t)number));
}
static void end(void) {
  must(ringmain_step_end(steps));
}
static void open_steps(void) {
  must(ringmain_open_process(&bus));
  must(ringmain_steps_open(bus, &steps));
}
static void close_steps(void) {
  ringmain_steps_close(steps);
  must(ringmain_close(bus, -1));
}
#endif

int main(int words, char** word) {
  const long count = words > 1 ? atol(word[1]) : 3;
  long number;
  long calls = 1;
  load();
  start();
  call(&calls); /* outside of any step */
  open_steps();
  for (number = 1; number <= count; ++number) {
    begin(number);
    call(&number); /* the step's number says how often */
    end();
  }
  close_steps();
  return 0;
}
