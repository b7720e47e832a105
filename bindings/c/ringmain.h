/* How is ringmain used from C, and from languages that call C? By this header and libringmain.so.
 *
 *   ringmain_bus* bus;              ringmain_open_process(&bus);
 *   ringmain_channel* steps;        ringmain_define(bus, &step_type, &steps);
 *   ringmain_subscription* seen;    ringmain_subscribe(steps, hear, 0, 0, 0, &seen);
 *   ringmain_publish(steps, &step, sizeof step);
 *   ringmain_unsubscribe(seen, -1); ringmain_subscription_free(seen);
 *
 * Calls return a code: 0 is success. ringmain_last_error() says in one sentence what went wrong in
 * this thread's last call that failed, and how to mend it. Nothing is thrown across these calls,
 * and no call ends the process. A call that fails leaves the pointers that it would fill alone.
 *
 * Structs that grow begin with `bytes`: set it to sizeof the struct. A library that knows a longer
 * one takes the missing members as 0; one that knows a shorter one refuses members that it does not
 * know unless they are 0. In options, 0 is the default. Times are in nanoseconds, CLOCK_MONOTONIC;
 * a limit below 0 means none. Strings are UTF-8, end with a zero, and are copied unless a comment
 * says otherwise.
 *
 * Threads: calls on a bus, channel or name may come from any thread, also inside callbacks. A
 * subscription, publisher, mailbox or recording belongs to one thread at a time. A channel's handle
 * is valid until its bus is closed; the others are freed by their own functions, before or after
 * that.
 *
 * Progress: a call is blocking (it takes a lock, or waits for another thread) unless it says
 * lock-free (some thread always gets on) or wait-free (it ends after so many steps of its own). */
#ifndef RINGMAIN_C_RINGMAIN_H
#define RINGMAIN_C_RINGMAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a call or a struct changes its meaning; additions do not raise it. */
#define RINGMAIN_C_ABI 1
/* Of this library. A program built for another number should say so and stop.
 * Progress: wait-free. */
uint32_t ringmain_c_abi(void);
/* "0.1.0": of this library. Progress: wait-free. */
const char* ringmain_version(void);

/* --- how a call ended --- */

typedef int32_t ringmain_code;
enum {
  RINGMAIN_OK = 0, /* published: accepted */
  /* from publishing */
  RINGMAIN_UNHEARD = 1,        /* nobody listens: not an error, nothing was lost */
  RINGMAIN_FULL = 2,           /* lost, and counted: too many of this publisher's in flight */
  RINGMAIN_CLOSED = 3,         /* the bus has stopped */
  RINGMAIN_WOULD_DEADLOCK = 4, /* inside a callback, where it would wait for itself */
  RINGMAIN_NO_MEMORY = 5,
  RINGMAIN_TOO_DEEP = 6, /* nested in more than eight inline subscribers, or scopes in 32; or
                            by a signal handler in the middle of a publish on the same lane */
  RINGMAIN_VETOED = 7,   /* an inline subscriber refused it; ringmain_last_error() says why */
  RINGMAIN_FORKED = 8,   /* this process is a fork, and the bus its parent's */
  /* from all else */
  RINGMAIN_REFUSED = 32, /* an argument is wrong */
  RINGMAIN_CONFLICT = 33,
  RINGMAIN_NOT_FOUND = 34,
  RINGMAIN_SYSTEM = 35,   /* the system gave no thread, or no descriptor */
  RINGMAIN_DEFERRED = 36, /* closed at once; the last running call is still to end */
  RINGMAIN_TIMEOUT = 37,  /* the limit passed first */
  RINGMAIN_NOT_ATTACHED = 38,
  RINGMAIN_EMPTY = 39 /* no event is there */
};
/* "full": the code's name. Never NULL. Progress: wait-free. */
const char* ringmain_code_name(ringmain_code code);
/* The sentence of this thread's last call that failed; "" if none did. Valid until the next one.
 * Progress: wait-free. */
const char* ringmain_last_error(void);

/* --- a bus --- */

typedef struct ringmain_bus ringmain_bus;
typedef struct ringmain_channel ringmain_channel;

typedef struct ringmain_bus_options {
  uint32_t bytes;
  uint32_t workers;         /* threads that call subscribers; 0: as many as suit the machine */
  const char* name;         /* names these threads; NULL: "ringmain" */
  const char* worker_cpus;  /* where they may run: "0-3,8"; NULL: as their process */
  int32_t worker_nice;      /* added to the process's niceness */
  uint32_t realtime_us_max; /* realtime publishers are heard within this; 0: 20,000 */
} ringmain_bus_options;

/* The process's bus, which all its libraries share: made at the first call, never destroyed. */
ringmain_code ringmain_open_process(ringmain_bus** bus);
/* A bus of your own. `options` may be NULL. */
ringmain_code ringmain_open(const ringmain_bus_options* options, ringmain_bus** bus);
/* Frees the handle and those of its channels. A bus of your own delivers what was accepted, and
 * stops. RINGMAIN_TIMEOUT: not within the limit; what was left is discarded, and the bus is closed
 * all the same. RINGMAIN_WOULD_DEADLOCK: called inside a callback; the bus stays open. NULL counts
 * as closed already. */
ringmain_code ringmain_close(ringmain_bus* bus, int64_t limit_ns);
/* Waits until all that was accepted before has been delivered. */
ringmain_code ringmain_flush(ringmain_bus* bus, int64_t limit_ns);

/* --- events and their channels --- */

/* The types of fields. An array is described as one field for each element. */
enum {
  RINGMAIN_U8 = 0,
  RINGMAIN_U16 = 1,
  RINGMAIN_U32 = 2,
  RINGMAIN_U64 = 3,
  RINGMAIN_I8 = 4,
  RINGMAIN_I16 = 5,
  RINGMAIN_I32 = 6,
  RINGMAIN_I64 = 7,
  RINGMAIN_F32 = 8,
  RINGMAIN_F64 = 9,
  RINGMAIN_BOOL = 10, /* one byte, 0 or 1 */
  RINGMAIN_ENUM = 11, /* 1, 2, 4 or 8 bytes; ringmain_field.enumerators names its values */
  RINGMAIN_NAME = 12, /* a uint32_t from ringmain_name() */
  RINGMAIN_TEXT = 13  /* 8, 16, 24 … 1,024 bytes, written by ringmain_set_text() */
};
enum {
  RINGMAIN_UNIT_NONE = 0,
  RINGMAIN_UNIT_BYTES = 1,
  RINGMAIN_UNIT_NS = 2,
  RINGMAIN_UNIT_ADDRESS = 3,
  RINGMAIN_UNIT_COUNT = 4,
  RINGMAIN_UNIT_DEVICE = 5,
  RINGMAIN_UNIT_STREAM = 6,
  RINGMAIN_UNIT_ID = 7
};

typedef struct ringmain_field {
  const char* name;
  const char* enumerators; /* of a RINGMAIN_ENUM: "instant,begin,end" for 0, 1, 2; may be NULL */
  uint32_t type;           /* RINGMAIN_U8 … */
  uint32_t unit;           /* RINGMAIN_UNIT_NONE … */
  uint32_t offset;         /* offsetof, a multiple of the type's size */
  uint32_t size;           /* sizeof the member */
} ringmain_field;
/* { "step", … } of a member of a struct. */
/* clang-format off */
#define RINGMAIN_FIELD(event, member, type, unit)                  \
  {                                                                \
    #member, 0, (type), (unit), (uint32_t)offsetof(event, member), \
        (uint32_t)sizeof(((event*)0)->member)                      \
  }
/* clang-format on */

#define RINGMAIN_EVENT_BYTES_MAX 1024
typedef struct ringmain_event_type {
  uint32_t bytes;
  uint32_t event_bytes;         /* sizeof the event: 1 … RINGMAIN_EVENT_BYTES_MAX */
  const char* name;             /* of its channel: dot-separated tokens, "train.step" */
  const ringmain_field* fields; /* in the order in which sinks show them */
  uint32_t fields_count;
  uint32_t field_bytes; /* sizeof(ringmain_field) */
} ringmain_event_type;

/* The channel of that event: made, or found if C, C++ or another language described it with the
 * same name, fields and size. RINGMAIN_CONFLICT: it exists with other fields or another size. */
ringmain_code ringmain_define(ringmain_bus* bus, const ringmain_event_type* type,
                              ringmain_channel** channel);
/* The channel of that name, in whichever language it was described. RINGMAIN_NOT_FOUND. */
ringmain_code ringmain_find(ringmain_bus* bus, const char* name, ringmain_channel** channel);
/* The fields of a channel by their number, from 0. The strings live as long as the process.
 * RINGMAIN_NOT_FOUND: it has fewer. Progress: wait-free. */
ringmain_code ringmain_channel_field(const ringmain_channel* channel, uint32_t number,
                                     ringmain_field* field);
uint32_t ringmain_channel_event_bytes(const ringmain_channel* channel); /* 0 of NULL; wait-free */

/* Interns `bytes` bytes of text, 64 KiB at most. The same text has the same number, for as long as
 * the process lives; 0 is "". Takes a lock: make names before you publish. */
uint32_t ringmain_name(const char* text, size_t bytes);
/* The text of a name, valid for ever, and its length if `bytes` is not NULL. No zero ends it.
 * Progress: wait-free. */
const char* ringmain_name_text(uint32_t name, size_t* bytes);
/* Writes text of `bytes` bytes into a RINGMAIN_TEXT field of `field_bytes`. Text longer than
 * field_bytes - 2 is cut, and marked as cut. Progress: wait-free. */
ringmain_code ringmain_set_text(void* field, size_t field_bytes, const char* text, size_t bytes);
/* The text of such a field, in place, and its length. No zero ends it. Progress: wait-free. */
const char* ringmain_text(const void* field, size_t field_bytes, size_t* bytes);

/* --- publish --- */

/* Publishes the event at `event`, which is copied, on a lane of this thread; the first call takes
 * that lane. `event_bytes` must be the size that was defined. RINGMAIN_UNHEARD is not a failure.
 * Progress: lock-free, but for what inline subscribers do; no allocation once warm; a system call
 * only to wake a worker. The first call is blocking. */
ringmain_code ringmain_publish(ringmain_channel* channel, const void* event, size_t event_bytes);
/* A number that no other call in this process gets: the op_id that joins the events of one
 * operation (collective.issued, .completed …). Never 0. Progress: wait-free. */
uint64_t ringmain_new_op_id(void);
/* Is anybody listening? For skipping the work of making an event. 0 of NULL. Progress:
 * wait-free, one load. */
int ringmain_wanted(const ringmain_channel* channel);

typedef struct ringmain_publisher ringmain_publisher;
enum { RINGMAIN_DROP_NEWEST = 0, RINGMAIN_DROP_OLDEST = 1, RINGMAIN_BLOCK = 2 };
typedef struct ringmain_publisher_options {
  uint32_t bytes;
  uint32_t capacity_events; /* of this publisher in flight, exact; 0: 65,536 */
  uint32_t overflow;        /* RINGMAIN_DROP_NEWEST … */
  uint32_t block_us_max;    /* RINGMAIN_BLOCK; 0: 1,000,000 */
  uint32_t ring;            /* 1: preallocated, for the lowest latency */
  uint32_t realtime;        /* 1: never a system call; implies ring; refuses RINGMAIN_BLOCK */
  uint32_t source_time;     /* 1: ringmain_publisher_publish_at() says when */
  uint32_t unused;
} ringmain_publisher_options;
typedef struct ringmain_ledger {
  uint32_t bytes;
  uint32_t unused;
  uint64_t offered; /* = dropped + delivered + in_flight; unheard events are not offered */
  uint64_t dropped;
  uint64_t delivered;
  uint64_t in_flight;
} ringmain_ledger;

ringmain_code ringmain_publisher_open(ringmain_channel* channel,
                                      const ringmain_publisher_options* options,
                                      ringmain_publisher** publisher);
/* Says what lanes ringmain_publish() takes for its threads from now on, in place of 65,536 events:
 * for a source that publishes in threads of others, without a system call (`realtime`) or without
 * loss (RINGMAIN_BLOCK). Of a realtime lane a thread's first publish touches 64 KiB, and the bus's
 * housekeeper the rest: a thread that gets there before it takes page faults. Once for each
 * channel: RINGMAIN_CONFLICT if other options were said before. Threads that have a lane keep it.
 * `source_time` is refused. Progress: lock-free. */
ringmain_code ringmain_set_thread_lanes(ringmain_channel* channel,
                                        const ringmain_publisher_options* options);
/* Progress: lock-free as ringmain_publish(), with RINGMAIN_BLOCK blocking. */
ringmain_code ringmain_publisher_publish(ringmain_publisher* publisher, const void* event,
                                         size_t event_bytes);
/* With source_time: the event happened at `time_ns` of the source's clock. Progress: as above. */
ringmain_code ringmain_publisher_publish_at(ringmain_publisher* publisher, const void* event,
                                            size_t event_bytes, int64_t time_ns);
/* Progress: wait-free. */
ringmain_code ringmain_publisher_ledger(const ringmain_publisher* publisher,
                                        ringmain_ledger* ledger);
void ringmain_publisher_close(ringmain_publisher* publisher);

/* --- subscribe --- */

enum { RINGMAIN_TIME_OF_WORKER = 0, RINGMAIN_TIME_OF_PUBLISHER = 1, RINGMAIN_TIME_OF_SOURCE = 2 };
/* An event as it is heard. Its pointers are valid until the callback returns. */
typedef struct ringmain_event {
  uint32_t bytes;
  uint32_t event_bytes;
  const void* event;
  const char* channel; /* its channel's name */
  int64_t time_ns;     /* 0 inline */
  uint64_t sequence;   /* 1, 2, 3 … per publisher; a gap is as many lost events; 0 inline */
  uint32_t publisher;  /* unique in the process; 0 inline */
  uint32_t time_from;  /* RINGMAIN_TIME_OF_WORKER … */
  const void* schema;  /* for ringmain_event_field() */
} ringmain_event;
/* As ringmain_channel_field(), for an event that is being heard. Progress: wait-free. */
ringmain_code ringmain_event_field(const ringmain_event* event, uint32_t number,
                                   ringmain_field* field);

typedef struct ringmain_subscription ringmain_subscription;
typedef struct ringmain_mailbox ringmain_mailbox;

/* Called on a worker, one call of a channel at a time. A longjmp out of it is not allowed. */
typedef void (*ringmain_hear_fn)(void* user, const ringmain_event* event);
/* Called in the publishing thread, by as many threads at once as publish. 0 lets the event go on;
 * a name vetoes it and says why. */
typedef uint32_t (*ringmain_judge_fn)(void* user, const ringmain_event* event);
/* Called once, after the last use of `user`, also if subscribing failed. May be NULL. */
typedef void (*ringmain_destroy_fn)(void* user);

enum { RINGMAIN_SHARED = 0, RINGMAIN_ISOLATED = 1, RINGMAIN_OWN_THREAD = 2 };
typedef struct ringmain_subscribe_options {
  uint32_t bytes;
  uint32_t served;       /* RINGMAIN_SHARED …; patterns: isolated at least */
  const char* name;      /* shown in figures and messages */
  int32_t priority;      /* higher first, within the channel */
  uint32_t stamped;      /* 1: publishers look at the clock for time_ns, about 20 ns each */
  uint32_t queue_events; /* of a subscriber that is not shared, of a mailbox; 0: 65,536 */
  uint32_t overflow;     /* of that queue; RINGMAIN_BLOCK is refused */
  int64_t budget_us;     /* a turn that takes longer is reported; 0: 100,000; below 0: never */
} ringmain_subscribe_options;

/* 1: this thread is inside a subscriber of any bus, in whichever language, so a source may leave
 * out what it sees just now: it would be heard for ever. Progress: wait-free. */
int ringmain_in_subscriber(void);
/* Events may be heard before this returns; `*subscription` is filled when it returns. */
ringmain_code ringmain_subscribe(ringmain_channel* channel, ringmain_hear_fn hear, void* user,
                                 ringmain_destroy_fn destroy,
                                 const ringmain_subscribe_options* options,
                                 ringmain_subscription** subscription);
/* Every channel that matches, present and future: "cuda.*" (one token), "compile.>" (the rest). */
ringmain_code ringmain_subscribe_pattern(ringmain_bus* bus, const char* pattern,
                                         ringmain_hear_fn hear, void* user,
                                         ringmain_destroy_fn destroy,
                                         const ringmain_subscribe_options* options,
                                         ringmain_subscription** subscription);
/* Called before the event is queued, in the publishing thread. Only the options `name` and
 * `priority` count. */
ringmain_code ringmain_subscribe_inline(ringmain_channel* channel, ringmain_judge_fn judge,
                                        void* user, ringmain_destroy_fn destroy,
                                        const ringmain_subscribe_options* options,
                                        ringmain_subscription** subscription);
/* RINGMAIN_OK: no call to it is running or will ever start, and `user` was destroyed.
 * RINGMAIN_DEFERRED: called inside a callback; the subscription is closed at once, and `user` is
 * destroyed after the last running call; call again outside to wait for that. RINGMAIN_TIMEOUT:
 * closed, and a call is still running; call again to wait. RINGMAIN_NOT_ATTACHED: it had ended
 * before, or is NULL.
 * The caller must hold no lock that the callback wants. */
ringmain_code ringmain_unsubscribe(ringmain_subscription* subscription, int64_t limit_ns);
/* Unsubscribes, without a limit, if that was not done; frees the handle. */
void ringmain_subscription_free(ringmain_subscription* subscription);

/* A queue that its owner drains. */
ringmain_code ringmain_mailbox_open(ringmain_channel* channel,
                                    const ringmain_subscribe_options* options,
                                    ringmain_mailbox** mailbox);
ringmain_code ringmain_mailbox_open_pattern(ringmain_bus* bus, const char* pattern,
                                            const ringmain_subscribe_options* options,
                                            ringmain_mailbox** mailbox);
/* Takes one event: copies it to `event`, a place of `event_bytes` bytes, which must be enough for
 * any of the mailbox (a channel's: its own size; a pattern's: RINGMAIN_EVENT_BYTES_MAX). `heard`,
 * if not NULL, gets the rest; set its `bytes`. Its pointers then lead to `event`, and to names that
 * live as long as the bus. RINGMAIN_EMPTY: there is no event. Progress: lock-free. */
ringmain_code ringmain_mailbox_take(ringmain_mailbox* mailbox, void* event, size_t event_bytes,
                                    ringmain_event* heard);
/* Calls `hear` for up to `events_max` events, in this thread; `*taken`, if not NULL, is how many.
 * `hear` may close the mailbox. Progress: lock-free, but for what `hear` does. */
ringmain_code ringmain_mailbox_drain(ringmain_mailbox* mailbox, ringmain_hear_fn hear, void* user,
                                     size_t events_max, size_t* taken);
/* Waits until an event is there. RINGMAIN_TIMEOUT: none came in time, or the bus has stopped. */
ringmain_code ringmain_mailbox_wait(ringmain_mailbox* mailbox, int64_t limit_ns);
/* A descriptor that polls readable while events are there; -1: the system gave none.
 * Progress: wait-free. */
int ringmain_mailbox_fd(ringmain_mailbox* mailbox);
void ringmain_mailbox_close(ringmain_mailbox* mailbox);

/* --- training steps --- */

/* Steps, phases and micro-batches on `train.step`, as nested scopes. For one thread, the training
 * loop's. Close them before their bus. */
typedef struct ringmain_steps ringmain_steps;
ringmain_code ringmain_steps_open(ringmain_bus* bus, ringmain_steps** steps);
ringmain_code ringmain_step_begin(ringmain_steps* steps, uint64_t number);
ringmain_code ringmain_phase_begin(ringmain_steps* steps, uint32_t name); /* ringmain_name() */
ringmain_code ringmain_micro_batch_begin(ringmain_steps* steps, uint32_t number); /* from 1 */
/* Ends the innermost scope that is open. */
ringmain_code ringmain_step_end(ringmain_steps* steps);
/* Ends all that are open. NULL counts as closed already. */
void ringmain_steps_close(ringmain_steps* steps);

/* In which step was an event published? Open this before the steps begin: a step that had begun is
 * not guessed at. The last 4,096 edges of `train.step` are known. It costs only the thread that
 * publishes these edges: a look at the clock and an extra lock for each. */
typedef struct ringmain_step_follow ringmain_step_follow;
typedef struct ringmain_step_place {
  uint32_t bytes;
  uint32_t phase; /* a name; 0: in no phase */
  uint64_t step;
  uint32_t micro_batch; /* from 1; 0: in none */
  uint32_t unused;
} ringmain_step_place;
ringmain_code ringmain_step_follow_open(ringmain_bus* bus, ringmain_step_follow** follow);
/* Where the loop was when the event was published, in whichever thread. RINGMAIN_NOT_FOUND: in no
 * known step, or the event's time was not taken by its publisher: subscribe with `stamped`, by
 * pattern or with a mailbox. Threads: any. Progress: wait-free; no allocation. */
ringmain_code ringmain_step_of(const ringmain_step_follow* follow, const ringmain_event* event,
                               ringmain_step_place* place);
/* NULL counts as closed already. */
void ringmain_step_follow_close(ringmain_step_follow* follow);

/* --- figures; set `bytes` before --- */

typedef struct ringmain_channel_stats {
  uint32_t bytes;
  uint32_t subscribers;
  uint64_t offered;  /* = accepted + full + closed + no_memory + too_deep + vetoed */
  uint64_t accepted; /* = delivered + evicted + discarded + pending */
  uint64_t full, closed, no_memory, too_deep, vetoed;
  uint64_t delivered, evicted, discarded, pending;
} ringmain_channel_stats;
typedef struct ringmain_subscription_stats {
  uint32_t bytes;
  uint32_t unused;
  uint64_t offered; /* = delivered + threw + skipped + dropped + pending */
  uint64_t delivered, threw, skipped, dropped, pending;
  uint64_t slow; /* turns over its budget */
} ringmain_subscription_stats;
ringmain_code ringmain_stats_of_channel(const ringmain_channel* channel,
                                        ringmain_channel_stats* stats);
ringmain_code ringmain_stats_of_subscription(const ringmain_subscription* subscription,
                                             ringmain_subscription_stats* stats);
ringmain_code ringmain_stats_of_mailbox(const ringmain_mailbox* mailbox,
                                        ringmain_subscription_stats* stats);

#ifdef __cplusplus
}
#endif

#include "ringmain_record.h" /* ringmain_record(), which is part of this interface */
#include "ringmain_visit.h"  /* and so is ringmain_event_visit() */
#endif
