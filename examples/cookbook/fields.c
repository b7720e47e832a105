/* How do I read an event of somebody else's in C: which fields does it have? */
#include <stdio.h>

#include <ringmain/c/ringmain.h>

static void print(void* user, const ringmain_event* heard) {
  ringmain_field field;
  uint32_t n;
  printf("%s, %d bytes:", heard->channel, (int)heard->event_bytes);
  for (n = 0; ringmain_event_field(heard, n, &field) == RINGMAIN_OK; ++n) printf(" %s", field.name);
  printf("\n");
  ++*(int*)user;
}

int main(void) {
  static const ringmain_field number = {"number", 0, RINGMAIN_U32, RINGMAIN_UNIT_ID, 0, 4};
  const ringmain_event_type type = {sizeof type, 4, "my.count", &number, 1, sizeof number};
  const uint32_t event = 1;
  int heard = 0;
  ringmain_bus* bus;
  ringmain_channel* counts;
  ringmain_subscription* all;
  if (ringmain_open(NULL, &bus) || ringmain_define(bus, &type, &counts) ||
      ringmain_subscribe_pattern(bus, "my.>", print, &heard, NULL, NULL, &all) ||
      ringmain_publish(counts, &event, sizeof event) || ringmain_flush(bus, -1)) {
    fprintf(stderr, "%s\n", ringmain_last_error());
    return 1;
  }
  ringmain_subscription_free(all);
  return ringmain_close(bus, -1) != RINGMAIN_OK || heard != 1;
}
