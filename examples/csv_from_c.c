/* How does C write events of any type? A subscriber by pattern visits the fields of each and writes
 * them as a line of CSV, after one with the names of its fields. */
#include <inttypes.h>
#include <stdio.h>

#include <ringmain/c/ringmain.h>

static int write_name(void* to, const ringmain_field* field, const ringmain_value* value) {
  const char* unit = ringmain_unit_name(field->unit);
  (void)value;
  return fprintf(to, *unit ? ",%s [%s]" : ",%s", field->name, unit) < 0; /* not 0: stop */
}

static int write_value(void* to, const ringmain_field* field, const ringmain_value* value) {
  uint64_t i;
  (void)field;
  fputc(',', to);
  if (value->kind == RINGMAIN_I64) return fprintf(to, "%" PRId64, value->i64) < 0;
  if (value->kind == RINGMAIN_F64) return fprintf(to, "%.17g", value->f64) < 0;
  if (value->text == NULL) return fprintf(to, "%" PRIu64, value->u64) < 0;
  fputc('"', to);
  for (i = 0; i < value->text_bytes; ++i) {
    if (value->text[i] == '"') fputc('"', to);
    fputc(value->text[i], to);
  }
  return fputc('"', to) == EOF;
}

static void write_event(void* to, const ringmain_event* heard) {
  if (heard->sequence == 1) {
    fputs("channel", to);
    (void)ringmain_event_visit(heard, write_name, to);
    fputc('\n', to);
  }
  fputs(heard->channel, to);
  (void)ringmain_event_visit(heard, write_value, to);
  fputc('\n', to);
}

typedef struct {
  uint64_t number;
  double seconds;
  char note[32];
  uint8_t loss;
} step;

static const ringmain_field step_fields[] = {
    RINGMAIN_FIELD(step, number, RINGMAIN_U64, RINGMAIN_UNIT_ID),
    RINGMAIN_FIELD(step, seconds, RINGMAIN_F64, RINGMAIN_UNIT_NONE),
    RINGMAIN_FIELD(step, note, RINGMAIN_TEXT, RINGMAIN_UNIT_NONE),
    {"loss", "fell,rose", RINGMAIN_ENUM, RINGMAIN_UNIT_NONE, (uint32_t)offsetof(step, loss), 1}};

static int failed(ringmain_code code) {
  if (code == RINGMAIN_OK) return 0;
  fprintf(stderr, "%s: %s\n", ringmain_code_name(code), ringmain_last_error());
  return 1;
}

int main(void) {
  const ringmain_event_type type = {sizeof type, sizeof(step),       "my.step", step_fields,
                                    4,           sizeof *step_fields};
  ringmain_bus* bus;
  ringmain_channel* steps;
  ringmain_subscription* writing;
  step s = {1, 0.5, {0}, 0};

  if (failed(ringmain_open_process(&bus)) || failed(ringmain_define(bus, &type, &steps)) ||
      failed(ringmain_subscribe_pattern(bus, "my.*", write_event, stdout, NULL, NULL, &writing)))
    return 1;
  if (failed(ringmain_set_text(s.note, sizeof s.note, "said \"fast\", was", 16)) ||
      failed(ringmain_publish(steps, &s, sizeof s)))
    return 1;
  s.number = 2;
  s.loss = 1;
  if (failed(ringmain_publish(steps, &s, sizeof s)) || failed(ringmain_flush(bus, -1))) return 1;
  ringmain_subscription_free(writing);
  return failed(ringmain_close(bus, -1));
}
