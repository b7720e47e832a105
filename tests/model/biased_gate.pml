/* biased_gate.pml -- may a worker call a subscriber without counting itself in, once it has called it often?
 * Extends gate_destroy.pml: the word has BIASED, and each worker a word of its own that shows whom it calls
 * (engine/subscribe/worker_calls.hpp, gate.hpp).
 *
 *   a call   shown = s; l_called; w = word                close   word |= CLOSED, and DEFERRED inside callbacks
 *     w has BIASED, not CLOSED: call                      called  word has BIASED: HEAVY; does anybody show s?
 *     else fetch_add; was it CLOSED? skip, else call,       without BIASED nobody shows a call that is made
 *       and perhaps word |= BIASED                        claim   CAS while not DEAD and count 0: word |= DEAD
 *     shown = 0, then fetch_sub if it was counted         inside  called? leave it to that call; else claim, destroy
 *     l_called; word has CLOSED? leave                    outside called? no: claim, destroy, return
 *   leave    DEFERRED, not DEAD: as inside                          else AWAITED? sleep while the word is that;
 *     word has AWAITED: word &= ~AWAITED, wake                    else word |= AWAITED; called?; look again
 *
 * What the model taught:
 *  - BIASED comes by read-modify-write in a counted call, so whoever closes finds it, or everybody who finds it
 *    finds CLOSED too. So a subscriber that was never called often costs its removal no barrier
 *    (BIAS_BESIDE: a flag of its own that is read before CLOSED is not enough).
 *  - Whoever leaves a closed one pays the barrier itself and looks for others: the last one finds nobody, and
 *    the claim is won once. No list of what is retired is needed, as a worker may destroy captures.
 *  - Between the count's end and the look no call is shown: `shown` is cleared first (COUNT_DOWN_FIRST).
 *  - As in inline_calls.pml: the look comes after the store (LEAVE_LOOKS_FIRST), the word is changed before a wake
 *    (WAKE_ONLY), and a barrier follows AWAITED (AWAIT_BLINDLY).
 *
 * Memory: TSO, a FIFO store buffer for each worker's word; all else is changed by read-modify-writes or under a
 * lock. HEAVY is membarrier; where that is refused nothing is ever biased, and gate_destroy.pml holds.
 * W workers call it CALLS times each, at once: as where a lease moves, and worse.
 * Scenes   default (a reset() outside)  TOGETHER (two wait outside)  INSIDE (each call may reset it; one waits
 *          outside)  ELSEWHERE (a callback of another subscription resets it; one waits outside)
 *          ALONE (with INSIDE or ELSEWHERE: nobody waits)  DEADLINE (who waits outside may give up)
 * Checked  destroyed once; no call during or after destruction, nor after a reset() outside has returned; such a
 *          reset() finds the destruction finished; in the end what was closed is destroyed; nobody waits for ever.
 * Mutants  marked M
 * Run: spin -a [-D..] biased_gate.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef W
#define W 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#define CLOSED   16
#define DEFERRED 32
#define DEAD     64
#define GONE    128
#define AWAITED 256
#define BIASED  512
#define COUNT(w) ((w) & 15)
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

short word;
bool shown[W];                     /* by worker                                                */
chan sb[W] = [2] of { bool };
bool listed = 1;
bool asleep[2];                    /* the threads that wait outside: W, W+1                     */
#ifdef BIAS_BESIDE
bool beside;
#endif
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
#define HEAVY i = 0; do :: atomic { i < W -> empty(sb[i]) -> i++ } :: atomic { i == W -> i = 0; break } od
#define CHANGE(to) w = word; word = to

inline wake() { asleep[0] = 0; asleep[1] = 0 }
inline scan() {
  i = 0; busy = 0;
  do
  :: atomic { i < W -> busy = busy || shown[i]; i++ }
  :: atomic { i == W -> i = 0; break }
  od
}
inline called() {                  /* it is closed                                             */
  busy = 0;
#ifdef BIAS_BESIDE                 /* M */
  if :: beside -> HEAVY; scan() :: else fi
#elif defined(UNBIASED)            /* M: as before there was BIASED */
  skip
#elif defined(NO_HEAVY)            /* M */
  if :: word & BIASED -> scan() :: else fi
#else
  if :: word & BIASED -> HEAVY; scan() :: else fi
#endif
}
inline destroy() {
  atomic { begun++; assert(begun == 1); assert(!running) };
  atomic { FLUSHED -> ended = 1; CHANGE(word | GONE);
    if :: w & AWAITED -> wake() :: else fi; w = 0 }
}
inline claim() {
#ifdef CLAIM_BY_LOAD               /* M */
  w = word;
  atomic { FLUSHED -> word = word | DEAD };
  won = !(w & DEAD) && !COUNT(w);
#else
  atomic { FLUSHED -> won = !(word & DEAD) && !COUNT(word); if :: won -> word = word | DEAD :: else fi };
#endif
  w = 0
}
inline settle() {                  /* closed and deferred                                      */
  called();
#ifdef LAST_ONE_ONLY               /* M: leaves it to the last call, though none may be running */
  if :: me >= W || !leaving -> busy = 1 :: else fi;
#endif
  if :: !busy -> claim(); if :: won -> won = 0; dead = 1; destroy() :: else fi :: else fi;
  busy = 0
}
inline close_gate(bits) { atomic { FLUSHED -> word = word | bits } }
inline unlist() { listed = 0 }
inline reset_inside() { close_gate(CLOSED | DEFERRED); unlist(); settle() }
inline leave() {                   /* w has CLOSED                                             */
  k = w; leaving = 1;
#ifndef LEAVE_TO_OTHERS            /* M: who closed it has looked                              */
  if :: (k & DEFERRED) && !(k & DEAD) -> settle() :: else fi;
#endif
  if
#ifndef NO_WAKE                    /* M */
  :: !dead && (k & AWAITED) ->
#ifndef WAKE_ONLY                  /* M */
     atomic { FLUSHED -> word = word & ~AWAITED };
#endif
     wake()
#endif
  :: else
  fi;
  atomic { k = 0; w = 0; leaving = 0; dead = 0 }
}

inline call() {
  atomic { running++; assert(!begun && !returned) };
#ifdef INSIDE
  if :: reset_inside() :: skip fi;
#endif
  atomic { assert(!begun && !returned); running-- }
}

proctype worker(byte me) {
  byte c, i;
  short w, k;
  bool busy, won, leaving, counted, dead, mine;
  do
  :: c < CALLS ->
     c++;
     if
     :: listed ->
#ifdef LOOK_FIRST                  /* M */
        w = word; sb[me]!1;
#else
        sb[me]!1; w = word;        /* l_called                                                 */
#endif
#ifdef BIAS_BESIDE
        if :: beside -> w = w | BIASED :: else fi;
#endif
        if
        :: (w & BIASED) && !(w & CLOSED) -> w = 0; call()
        :: else ->
           atomic { FLUSHED -> CHANGE(word + 1); counted = 1; mine = 1 };
           if
           :: !(w & CLOSED) ->
              w = 0;
              call();
              if
#ifdef BIAS_BESIDE
              :: beside = 1
#elif defined(BIAS_BY_STORE)       /* M */
              :: w = word; atomic { FLUSHED -> word = w | BIASED; w = 0 }
#else
              :: atomic { FLUSHED -> word = word | BIASED }
#endif
              :: skip
              fi
           :: else -> w = 0
           fi
        fi;
        w = 0;
#ifdef COUNT_DOWN_FIRST            /* M */
        if :: counted -> atomic { FLUSHED -> word--; w = word; counted = 0 }; sb[me]!0
           :: else -> sb[me]!0; w = word
        fi;
#elif defined(LEAVE_LOOKS_FIRST)   /* M */
        if :: counted -> sb[me]!0; atomic { FLUSHED -> word--; w = word; counted = 0 }
           :: else -> w = word; sb[me]!0
        fi;
#else
        sb[me]!0;
        if :: counted -> atomic { FLUSHED -> word--; w = word; counted = 0 }
           :: else -> w = word     /* l_called                                                 */
        fi;
#endif
        if
#ifdef LEAVE_WITH_COUNT            /* also a holding variant: it is not left to the last one   */
        :: w & CLOSED -> leave()
#else
        :: (w & CLOSED) && !(mine && COUNT(w)) -> leave()
#endif
        :: else
        fi;
        atomic { w = 0; mine = 0 }
     :: else
     fi
  :: else -> break
  od;
  finished++
}

inline wait_outside() {
  called();
  do
  :: w = word;
     if
     :: w & GONE -> break
     :: !(w & GONE) && !(w & DEAD) && !COUNT(w) && !busy ->
        claim();
        if :: won -> won = 0; destroy(); break :: else fi
     :: else ->
        if
        :: !(w & AWAITED) ->
           atomic { word = word | AWAITED };
#ifdef AWAIT_BLINDLY               /* M */
           if :: word & BIASED -> scan() :: else -> busy = 0 fi
#else
           called()
#endif
        :: else ->
           atomic { if :: word == w -> asleep[me-W] = 1 :: else fi };
           (!asleep[me-W]);
           called()
        fi
     fi
#ifdef DEADLINE
  :: true -> reset_inside(); goto out
#endif
  od;
  atomic { returned = 1; assert(ended && !running) }
}
proctype outside(byte me) {
  byte i;
  short w;
  bool busy, won, leaving, dead;
  close_gate(CLOSED);
  unlist();
  wait_outside();
out:
  finished++
}
proctype elsewhere() {
  byte me = W, i;
  short w;
  bool busy, won, leaving, dead;
  reset_inside();
  finished++
}
init {
  atomic {
    byte t;
    do :: t < W -> run worker(t); run cpu(t); t++ :: else -> t = 0; break od;
#ifdef ELSEWHERE
    run elsewhere();
#endif
#ifndef ALONE
    run outside(W);
#endif
#ifdef TOGETHER
    run outside(W + 1)
#endif
  };
  (finished == THREADS);
  assert(!running && !COUNT(word));
  assert(!(word & CLOSED) || (ended && (word & GONE)))
}
