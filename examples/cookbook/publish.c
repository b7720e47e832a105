/* How do I publish from C? */
#include <stdio.h>

#include <ringmain/c/ringmain.h>

typedef struct {
  uint64_t number;
  double loss;
} step;
static const ringmain_field fields[] = {
    RINGMAIN_FIELD(step, number, RINGMAIN_U64, RINGMAIN_UNIT_ID),
    RINGMAIN_FIELD(step, loss, RINGMAIN_F64, RINGMAIN_UNIT_NONE)};

static void print(void* user, const ringmain_event* heard) {
  const step* s = heard->event;
  (void)user;
  printf("%s %d: %.2f\n", heard->channel, (int)s->number, s->loss);
}

int main(void) {
  const ringmain_event_type type = {sizeof type, sizeof(step),  "my.step", fields,
                                    2,           sizeof *fields};
  const step first = {1, 2.5};
  ringmain_bus* bus;
  ringmain_channel* steps;
  ringmain_subscription* printing;
  if (ringmain_open_process(&bus) || ringmain_define(bus, &type, &steps) ||
      ringmain_subscribe(steps, print, NULL, NULL, NULL, &printing) ||
      ringmain_publish(steps, &first, sizeof first) || ringmain_flush(bus, -1)) {
    fprintf(stderr, "%s\n", ringmain_last_error());
    return 1;
  }
  ringmain_subscription_free(printing);
  return ringmain_close(bus, -1) != RINGMAIN_OK;
}
