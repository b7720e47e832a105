/* Is ringmain.h C, of every standard, and C++? Compiled as each; and does every struct have the
 * size and the places that a program of another compiler, or Fortran, was built for? */
#include "bindings/c/ringmain.h"

#define RINGMAIN_ASSERT_AT(line, holds) typedef char ringmain_assert_##line[(holds) ? 1 : -1]
#define RINGMAIN_ASSERT_IN(line, holds) RINGMAIN_ASSERT_AT(line, holds)
#define RINGMAIN_HOLDS(holds) RINGMAIN_ASSERT_IN(__LINE__, holds)

RINGMAIN_HOLDS(sizeof(ringmain_field) == 32);
RINGMAIN_HOLDS(sizeof(ringmain_event_type) == 32);
RINGMAIN_HOLDS(sizeof(ringmain_event) == 56);
RINGMAIN_HOLDS(offsetof(ringmain_event, schema) == 48);
RINGMAIN_HOLDS(sizeof(ringmain_bus_options) == 32);
RINGMAIN_HOLDS(sizeof(ringmain_publisher_options) == 32);
RINGMAIN_HOLDS(sizeof(ringmain_subscribe_options) == 40);
RINGMAIN_HOLDS(sizeof(ringmain_ledger) == 40);
RINGMAIN_HOLDS(sizeof(ringmain_channel_stats) == 96);
RINGMAIN_HOLDS(sizeof(ringmain_subscription_stats) == 64);
RINGMAIN_HOLDS(sizeof(ringmain_record_options) == 32);
RINGMAIN_HOLDS(offsetof(ringmain_record_options, ring_bytes) == 24);
RINGMAIN_HOLDS(sizeof(ringmain_value) == 56);
RINGMAIN_HOLDS(offsetof(ringmain_value, cut) == 48);

typedef struct {
  uint64_t step;
  char text[16];
} event;
/* Not called: that it compiles is the test. */
int ringmain_header_compiles(void);
int ringmain_header_compiles(void) {
  const ringmain_field fields[] = {RINGMAIN_FIELD(event, step, RINGMAIN_U64, RINGMAIN_UNIT_ID),
                                   RINGMAIN_FIELD(event, text, RINGMAIN_TEXT, RINGMAIN_UNIT_NONE)};
  ringmain_channel* channel = 0;
  return fields[1].offset == 8 && ringmain_wanted(channel);
}
