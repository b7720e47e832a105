/* coalesce.pml -- a queued event is replaced by a newer one of its key, in its place, while the reader
 * may be taking it.  Question: is a slot ever read half written, an event heard twice or out of order
 * of its key, the newest of a key lost; may a slot be replaced that holds another event by now; is there
 * room for each key, if there are slots for twice the keys?
 *
 *   feeder (one at a time)                         reader (one at a time)
 *     key queued at index i, and                     end = published
 *     index i+R not yet pushed, and                  for the slots from `consumed` to `end`:
 *     CAS claim: queued -> replacing:                  written (sequence)?
 *       writes; claim = queued                         CAS claim: queued -> taken; else: no more
 *     else room (published - consumed < R):          reads them
 *       writes; claim = queued; sequence             consumed += so many
 *     else: full
 *
 * A run ends where the queue ended when it began: what is queued is of different keys, so at most one
 * event of each key is being read and one more queued.  A reader that takes on while the feeder goes
 * on (TAKE_ON) fills the ring with one key, and the newest of another is refused.
 *
 * The order of stores is the model's own (the code: release and acquire); what is checked is the logic.
 * Size    NE events over 2 keys, R slots
 * Mutants, each must fail: marked M below
 */
#ifndef NE
#define NE 7
#endif
#ifndef R
#define R 2
#endif
#define FREE 0
#define QUEUED 1
#define REPLACING 2
#define TAKEN 3
byte claim[R], seq[R];            /* seq: index + 1 of what is written                          */
byte key[R], a[R], b[R];          /* the event: two halves, so that a torn read shows           */
byte published, consumed;
byte last[2], heard[2];           /* ghosts: newest offered and not refused, newest heard; by key */
byte del, merged, refused, offered;
bool ended;

inline fill(s) { a[s] = n; key[s] = k; b[s] = n }
proctype feeder() {
  byte n, k, s, i;
  byte at[2];                     /* 1 + index where the key was queued last                    */
  do
  :: n < NE ->
     n++; offered++;
     if :: k = 0 :: k = 1 fi;
     if
#ifdef ANY_LAP                                              /* M */
     :: at[k] ->
#else
     :: at[k] && published <= at[k] - 1 + R ->
#endif
        s = (at[k] - 1) % R;
#ifdef LOOK_THEN_WRITE                                      /* M */
        if :: claim[s] == QUEUED -> claim[s] = REPLACING; i = 1 :: else -> i = 0 fi
#else
        atomic { if :: claim[s] == QUEUED -> claim[s] = REPLACING; i = 1 :: else -> i = 0 fi }
#endif
     :: else -> i = 0
     fi;
     if
     :: i == 1 ->
        fill(s);
        atomic { last[k] = n; merged++; claim[s] = QUEUED }
     :: i == 0 && published - consumed < R ->
        s = published % R;
        fill(s);
        claim[s] = QUEUED;
        atomic { seq[s] = published + 1; last[k] = n; at[k] = published + 1; published++ }
     :: else ->
        assert(R < 4);                                      /* twice the keys: always room      */
        refused++
     fi;
     i = 0; s = 0
  :: else -> break
  od;
  ended = 1
}
proctype reader() {
  byte s, v, w, i, till;
  do
  :: seq[consumed % R] == consumed + 1 ->
#ifdef TAKE_ON                                              /* M */
     till = consumed + R;
#else
     till = published;
#endif
     do                                                     /* takes a run                      */
     :: consumed + i < till && seq[(consumed + i) % R] == consumed + i + 1 ->
        s = (consumed + i) % R;
#ifdef TAKE_BY_LOOK                                         /* M */
        if :: claim[s] == QUEUED -> skip :: else -> break fi;
        claim[s] = TAKEN;
#elif defined(TAKE_ANYWAY)                                  /* M */
        claim[s] = TAKEN;
#else
        atomic { if :: claim[s] == QUEUED -> claim[s] = TAKEN :: else -> break fi };
#endif
        i++
     :: else -> break
     od;
     till = consumed + i;
     i = consumed;
     do                                                     /* reads it                         */
     :: i < till ->
        s = i % R;
        v = a[s];
        w = b[s];
        assert(v == w);                                     /* not torn                         */
        atomic { assert(v > heard[key[s]]); heard[key[s]] = v; del++; i++ }
     :: else -> break
     od;
     atomic { consumed = till; i = 0; till = 0; s = 0; v = 0; w = 0 }
  :: atomic { ended && seq[consumed % R] != consumed + 1 ->
       assert(heard[0] == last[0] && heard[1] == last[1]);  /* the newest of each key arrives   */
       assert(del + merged + refused == offered); break }
  od
}
init { atomic { run feeder(); run reader() } }
