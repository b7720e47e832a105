/* How does C read an event whose type it does not know? Field by field. A part of ringmain.h, which
 * includes this and has the rules.
 *
 *   int show(void* user, const ringmain_field* field, const ringmain_value* value);
 *   ringmain_event_visit(event, show, user); // in a subscriber
 *
 * An array in an event is described as a field for each element, so a field has one value. */
#ifndef RINGMAIN_C_RINGMAIN_VISIT_H
#define RINGMAIN_C_RINGMAIN_VISIT_H

#include "ringmain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A field's value, widened: `kind` says which member has it. The field's own type stays in
 * ringmain_field.type. Valid until the visit returns. */
typedef struct ringmain_value {
  uint32_t bytes; /* sizeof this struct as the library has it */
  uint32_t kind;  /* RINGMAIN_U64, _I64, _F64, _BOOL, _ENUM or _TEXT */
  uint64_t u64;   /* RINGMAIN_U64; RINGMAIN_BOOL: 0 or 1; RINGMAIN_ENUM: its number */
  int64_t i64;    /* RINGMAIN_I64 */
  double f64;     /* RINGMAIN_F64, also of a RINGMAIN_F32 field */
  /* RINGMAIN_TEXT: of a name or a text. RINGMAIN_ENUM: the word, NULL if it has none. No zero ends
   * it, and it may hold any bytes. */
  const char* text;
  uint64_t text_bytes;
  uint32_t cut; /* 1: the text was longer than its field holds */
  uint32_t unused;
} ringmain_value;

/* 0 goes on; anything else ends the visit. */
typedef int (*ringmain_visit_fn)(void* user, const ringmain_field* field,
                                 const ringmain_value* value);
/* Calls `visit` for each field, in the order of the event's description, in this thread. `event` is
 * one that is being heard, or was taken from a mailbox. RINGMAIN_REFUSED: it was not heard.
 * Progress: wait-free, but for what `visit` does; no allocation. */
ringmain_code ringmain_event_visit(const ringmain_event* event, ringmain_visit_fn visit,
                                   void* user);
/* "ns": the unit's name as sinks write it; "" for RINGMAIN_UNIT_NONE and what is none. Never NULL.
 * Progress: wait-free. */
const char* ringmain_unit_name(uint32_t unit);

#ifdef __cplusplus
}
#endif
#endif
