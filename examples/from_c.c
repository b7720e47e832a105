/* How does a C program publish and subscribe? It describes its event once and publishes it; a
 * callback on a worker hears it, and so does a queue that the program drains.
 *
 *   from_c          three steps
 *   from_c FOLDER   and they stay in a file there; then: ringmain post-mortem FOLDER */
#include <stdio.h>

#include <ringmain/c/ringmain.h>

typedef struct {
  uint64_t step;
  double loss;
} step;

static const ringmain_field step_fields[] = {
    RINGMAIN_FIELD(step, step, RINGMAIN_U64, RINGMAIN_UNIT_ID),
    RINGMAIN_FIELD(step, loss, RINGMAIN_F64, RINGMAIN_UNIT_NONE)};

static void print(void* user, const ringmain_event* heard) {
  const step* s = heard->event;
  (void)user;
  printf("%s %llu: loss %.2f\n", heard->channel, (unsigned long long)s->step, s->loss);
}

static int failed(ringmain_code code) {
  if (code == RINGMAIN_OK) return 0;
  fprintf(stderr, "%s: %s\n", ringmain_code_name(code), ringmain_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const ringmain_event_type type = {sizeof type, sizeof(step),       "my.step", step_fields,
                                    2,           sizeof *step_fields};
  ringmain_bus* bus;
  ringmain_channel* steps;
  ringmain_subscription* printing;
  ringmain_mailbox* mailbox;
  ringmain_record_options where = {0};
  ringmain_recording* recording = NULL;
  step s;
  int count = 0;

  if (failed(ringmain_open_process(&bus)) || failed(ringmain_define(bus, &type, &steps)) ||
      failed(ringmain_subscribe(steps, print, NULL, NULL, NULL, &printing)) ||
      failed(ringmain_mailbox_open(steps, NULL, &mailbox)))
    return 1;
  where.bytes = sizeof where;
  where.folder = argc > 1 ? argv[1] : NULL;
  if (argc > 1 && failed(ringmain_record(bus, "my.>", &where, &recording))) return 1;
  for (s.step = 1; s.step <= 3; ++s.step) {
    s.loss = 2.5 / (double)s.step;
    if (failed(ringmain_publish(steps, &s, sizeof s))) return 1; /* lost, and counted */
  }
  if (failed(ringmain_flush(bus, -1))) return 1; /* all that was published has been heard */
  if (failed(ringmain_unsubscribe(printing, -1))) return 1; /* and nothing calls print() again */
  while (ringmain_mailbox_take(mailbox, &s, sizeof s, NULL) == RINGMAIN_OK) ++count;
  ringmain_subscription_free(printing);
  ringmain_mailbox_close(mailbox);
  printf("%d waited in the mailbox\n", count);
  if (recording != NULL)
    printf("ringmain post-mortem %s%s\n", ringmain_recording_path(recording),
           ringmain_recording_complaint(recording)); /* the one or the other */
  ringmain_recording_close(recording);
  return failed(ringmain_close(bus, -1)) || count != 3;
}
