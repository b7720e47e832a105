/* A training loop with each fault that is an alarm, or without any. usage: alarms faults|none STEPS
 */
#include <stdint.h>
#include <string.h>

#include "bindings/c/ringmain.h"

#include "tests/adapters/cuda/programs/calls.h"

static ringmain_bus* bus;
static ringmain_steps* steps;
static int (*synchronize)(void);
static int (*stream_create)(void**);
static int (*stream_destroy)(void*);

static void must(ringmain_code code) {
  if (code == RINGMAIN_OK) return;
  puts(ringmain_last_error());
  exit(96);
}
static void done(int code) {
  if (code != 0) exit(95);
}

static void one_step(long number, int faults) {
  Event event;
  void *memory, *stream;
  must(ringmain_step_begin(steps, (uint64_t)number));
  done(cuda.event_create(&event));
  done(stream_create(&stream));
  done(cuda.event_record(event, stream));
  done(cuda.malloc(&memory, 1 << 20));
  if (faults) done(synchronize());
  if (!faults || number > 2) done(cuda.event_destroy(event));
  if (!faults || number > 1) done(stream_destroy(stream));
  if (!faults) done(cuda.free(memory));
  must(ringmain_step_end(steps));
}

int main(int words, char** word) {
  const int faults = words > 1 && strcmp(word[1], "faults") == 0;
  const long count = words > 2 ? atol(word[2]) : 20;
  long number;
  load();
  void* const library = dlopen("libcudart.so.13", RTLD_NOW);
  *(void**)&synchronize = find(library, "cudaDeviceSynchronize");
  *(void**)&stream_create = find(library, "cudaStreamCreate");
  *(void**)&stream_destroy = find(library, "cudaStreamDestroy");
  start();
  done(synchronize()); /* outside of any step */
  must(ringmain_open_process(&bus));
  must(ringmain_steps_open(bus, &steps));
  for (number = 1; number <= count; ++number) one_step(number, faults);
  ringmain_steps_close(steps);
  must(ringmain_close(bus, -1));
  return 0;
}
