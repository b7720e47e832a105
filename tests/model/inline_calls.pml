/* inline_calls.pml -- how does an inline subscriber leave while publishing threads may be calling it, though
 * a call changes no word that another thread writes?  (engine/subscribe/shown.hpp, gate.hpp, retire_list.cpp)
 *
 *   a call, on a word of the thread's own lane       close    word |= CLOSED, and DEFERRED inside callbacks
 *     shown = s                                      unlist   the row without s is current (lock)
 *     l_shown                                        settle   HEAVY; is s shown by any lane? if not, claim
 *     word has CLOSED? skip, else call               claim    word |= DEAD: not set before? destroy, GONE, wake
 *     shown = 0 (or the next of the row)             wait     settle; GONE? over; DEAD or shown: AWAITED? sleep
 *     l_shown                                                   while the word is that; else word |= AWAITED;
 *     word has CLOSED? leave                                    HEAVY, and look again
 *   leave: DEFERRED, not DEAD: word |= RETIRED; not  reclaim  (a worker, the housekeeper, stop(): it has the
 *     set before? onto the retire list                        retired one to itself) settle; if s is shown:
 *   leave: AWAITED: word &= ~AWAITED, wake all                word &= ~RETIRED, and look once more
 *
 * The gate's word is changed by read-modify-writes only, and only by those that close, wait, reclaim, or
 * leave a call of one that was closed meanwhile.
 *
 * What the model taught:
 *  - Whoever leaves last cannot know it.  So each that leaves a deferred one retires it, if it is not
 *    retired; who reclaims finds out, and if it is shown still takes RETIRED back, and must look again
 *    (NO_SECOND_LOOK): the last one may have left in between, and have found it retired.
 *  - Who reclaims needs a barrier of its own: the one that closed may not have come to its own
 *    (RECLAIM_BLINDLY).
 *  - Who leaves must change the word before it wakes: there is no count in it any more whose change would
 *    end a sleep that is just about to begin (WAKE_ONLY).
 *  - Lanes must be counted after the gate was closed: the thread of one that is taken later finds it closed
 *    (LANES_FIRST).
 *
 * Default: the light fences cost nothing and HEAVY is membarrier.  -DFENCE: all are full fences of the thread
 * itself.  Memory: TSO, a FIFO store buffer for each lane's word; all else is changed by read-modify-writes
 * or under a lock.
 * W publishing threads take a lane each and publish CALLS times.
 * Scenes   default (a reset() outside)  TOGETHER (two wait outside)  INSIDE (each call may reset it; one waits
 *          outside)  ELSEWHERE (a callback of another subscription resets it; one waits outside)
 *          ALONE (with INSIDE or ELSEWHERE: nobody waits)  DEADLINE (who waits outside may give up)
 *          CLOSES (the retire list is closed at some time: who retires then reclaims)
 * Checked  destroyed once; no call during or after destruction, nor after a reset() outside has returned; such a
 *          reset() finds the destruction finished; it is in the retire list once at a time; in the end what
 *          was closed is destroyed; nobody waits for ever.
 * Mutants  marked M
 * Run: spin -a [-D..] inline_calls.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef W
#define W 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#define CLOSED    1
#define DEFERRED  2
#define DEAD      4
#define GONE      8
#define RETIRED  16
#define AWAITED  32
#ifdef TOGETHER
#define WAITERS 2
#elif defined(ALONE)
#define WAITERS 0
#else
#define WAITERS 1
#endif
#ifdef ELSEWHERE
#define THREADS (W+WAITERS+1)
#else
#define THREADS (W+WAITERS)
#endif

byte word;
bool shown[W];                     /* by lane                                                  */
chan sb[W] = [2] of { bool };
byte lanes;
bool listed = 1, in_list, list_closed;
bool asleep[2];                    /* the threads that wait outside: W, W+1                     */
/* ---- ghosts ---- */
byte running, begun, finished;
bool ended, returned;

proctype cpu(byte t) {             /* a buffered store becomes visible at any time             */
  bool v;
end: do
  :: atomic { sb[t]?v -> shown[t] = v; v = 0 }
  od
}
#define FLUSHED (me >= W || empty(sb[me]))          /* before a read-modify-write              */
#ifdef FENCE
#define l_shown FLUSHED
#define HEAVY FLUSHED
#else
#define l_shown skip
#define HEAVY i = 0; do :: atomic { i < W -> empty(sb[i]) -> i++ } :: atomic { i == W -> i = 0; break } od
#endif
#ifdef NO_L_SHOWN                  /* M, with FENCE */
#undef l_shown
#define l_shown skip
#endif
#define CHANGE(to) w = word; word = to

inline wake() { asleep[0] = 0; asleep[1] = 0 }
inline scan() {
  atomic { i = 0; busy = 0;
#ifndef LANES_FIRST                /* M */
  n = lanes
#endif
  };
  do
  :: atomic { i < n -> busy = busy || shown[i]; i++ }
  :: atomic { i >= n -> i = 0; break }
  od
}
inline destroy() {
  atomic { begun++; assert(begun == 1); assert(!running) };
  atomic { FLUSHED -> ended = 1; CHANGE(word | GONE);
    if :: w & AWAITED -> wake() :: else fi; w = 0 }
}
inline claim() {                   /* it is closed, and was not shown                          */
#ifdef CLAIM_BY_LOAD               /* M */
  w = word;
  atomic { FLUSHED -> word = word | DEAD };
#else
  atomic { FLUSHED -> CHANGE(word | DEAD) };
#endif
  if :: !(w & DEAD) -> destroy() :: else fi;
  w = 0
}
inline settle() {
#ifndef NO_HEAVY                   /* M */
  HEAVY;
#endif
  scan()
}
inline reclaim() {                 /* in_list is 0 by now                                      */
#ifdef RECLAIM_BLINDLY             /* M */
  scan();
#else
  settle();
#endif
  if
  :: busy ->
     atomic { FLUSHED -> word = word & ~RETIRED };
#ifdef NO_SECOND_LOOK              /* M */
#else
     scan()
#endif
  :: else
  fi;
  if :: !busy -> claim() :: else fi;
  busy = 0
}
inline close_gate(bits) { atomic { FLUSHED -> word = word | bits } }
inline unlist() { listed = 0 }
inline reset_inside() {
  close_gate(CLOSED | DEFERRED);
  unlist();
  settle();
#ifdef LAST_ONE_ONLY               /* M: leaves it to the last call, though none may be running */
  busy = 1;
#endif
  if :: !busy -> claim() :: else fi;
  busy = 0
}
inline leave() {                   /* w has CLOSED                                             */
  k = w;
  if
  :: (k & DEFERRED) && !(k & DEAD) ->
#ifdef RETIRE_TWICE                /* M */
     mine = 1;
#else
     atomic { FLUSHED -> CHANGE(word | RETIRED); mine = !(w & RETIRED) };
#endif
  :: else
  fi;
  if
#ifndef NO_WAKE                    /* M */
  :: k & AWAITED ->
#ifndef WAKE_ONLY                  /* M */
     atomic { FLUSHED -> word = word & ~AWAITED };
#endif
     wake()
#endif
  :: else
  fi;
  if
  :: mine ->
     atomic {
       if
       :: list_closed -> skip
       :: else -> assert(!in_list); in_list = 1; mine = 0
       fi
     };
     if :: mine -> mine = 0; reclaim() :: else fi
  :: else
  fi;
  atomic { k = 0; w = 0 }
}

proctype publisher() {
  byte me, c, i, n, w, k;
  bool busy, mine;
  atomic { me = lanes; lanes++ };  /* under the lock, as unlist()                              */
  do
  :: c < CALLS ->
     c++;
     if
     :: listed ->
#ifdef LOOK_FIRST                  /* M */
        w = word; sb[me]!1; l_shown;
#else
        sb[me]!1; l_shown; w = word;
#endif
        if
        :: !(w & CLOSED) ->
           atomic { running++; assert(!begun && !returned) };
#ifdef INSIDE
           if :: reset_inside() :: skip fi;
#endif
           atomic { assert(!begun && !returned); running-- }
        :: else
        fi;
#ifdef NO_LOOK_IF_SKIPPED          /* M: one that was not called is left without a look         */
        if :: w & CLOSED -> sb[me]!0; w = 0 :: else -> sb[me]!0; l_shown; w = word fi;
#elif defined(LEAVE_LOOKS_FIRST)   /* M */
        w = word; sb[me]!0;
#else
        sb[me]!0; l_shown; w = word;
#endif
        if :: w & CLOSED -> leave() :: else fi;
        w = 0
     :: else
     fi
  :: else -> break
  od;
  finished++
}

inline wait_outside() {
  settle();
  do
  :: w = word;
     if
     :: w & GONE -> break
     :: !(w & GONE) && !(w & DEAD) && !busy -> claim(); w = word; if :: w & GONE -> break :: else fi
     :: else ->
        if
        :: !(w & AWAITED) ->
           atomic { word = word | AWAITED };
#ifndef AWAIT_BLINDLY              /* M */
           HEAVY
#endif
        :: else ->
           atomic { if :: word == w -> asleep[me-W] = 1 :: else fi };
           (!asleep[me-W])
        fi;
        scan()
     fi
#ifdef DEADLINE
  :: true -> reset_inside(); goto out
#endif
  od;
  atomic { returned = 1; assert(ended && !running) }
}
proctype outside(byte me) {
  byte i, n, w;
  bool busy;
#ifdef LANES_FIRST
  n = lanes;
#endif
  close_gate(CLOSED);
  unlist();
  wait_outside();
out:
  finished++
}
proctype elsewhere() {
  byte me = W, i, n, w;
  bool busy;
  reset_inside();
  finished++
}
proctype reclaimer() {
  byte me = W, i, n, w;
  bool busy;
  do
  :: atomic { in_list -> in_list = 0 }; reclaim()
#ifdef CLOSES
  :: atomic { !list_closed -> list_closed = 1; busy = in_list; in_list = 0 };
     if :: busy -> reclaim() :: else fi;
     break
#else
  :: atomic { finished == THREADS && !in_list -> break }
#endif
  od;
  finished++
}
init {
  atomic {
    byte t;
    do :: t < W -> run publisher(); run cpu(t); t++ :: else -> t = 0; break od;
#ifdef ELSEWHERE
    run elsewhere();
#endif
#ifndef ALONE
    run outside(W);
#endif
#ifdef TOGETHER
    run outside(W + 1);
#endif
    run reclaimer()
  };
  (finished == THREADS + 1);
  assert(!running && !in_list);
  assert(!(word & CLOSED) || (ended && (word & GONE)))
}
