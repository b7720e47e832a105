/* gate_destroy.pml -- which thread destroys the captures of a closed subscription, and when may reset()
 * return?  Extends unsubscribe_quiescence.pml: the gate is one word {CLOSED, DEFERRED, DEAD, GONE,
 * AWAITED, count}, changed by RMW only; the word is also the futex of threads that wait for quiescence.
 *
 *   enter            old = fetch_add(1); old has CLOSED: leave, skip (a late worker: it bounces)
 *   leave            w = fetch_sub(1) - 1; w has CLOSED and count 0:
 *                      w has DEFERRED and claim(): destroy; else wake all, if w has AWAITED
 *   claim            CAS while not DEAD and count 0: set DEAD; true for one thread, once
 *   destroy          the captures; fetch_or(GONE); wake all, if that found AWAITED
 *   reset, inside    w = fetch_or(CLOSED|DEFERRED); count 0 and claim(): destroy.  Never waits.
 *   reset, outside   fetch_or(CLOSED); loop: w = load; GONE: return;
 *                      count 0 and not DEAD: claim(): destroy, return; lost: look again
 *                      else w has AWAITED: futex_wait(w); else fetch_or(AWAITED), look again
 *   give up          (a deadline, and the handle is let go) as reset, inside
 *   wait later       a deferred handle, from outside: as reset, outside
 *
 * What the model taught:
 *  - A claim that fails because a late worker bounces the count is not a lost claim: the waiter must
 *    look again.  "The CAS failed, so wait for GONE" sleeps for ever (CAS_ONCE).
 *  - A thread that has seen count 0 after CLOSED knows that no callback runs or will.  So DEAD may be set beside
 *    a bouncing count, by fetch_or: -DOR holds too, without a loop.
 *  - leave may wake only if nothing is deferred or dead (-DQUIET holds), but then GONE and DEAD must
 *    be looked at before the count: a waiter that first waits for count 0 falls asleep on a late
 *    worker's count, and that worker wakes nobody (-DQUIET -DCOUNT_FIRST fails).
 *  - A reset_for() that gave up and whose handle is then let go must set DEFERRED, and destroy if the
 *    count is 0 by then; else nobody destroys (FORGET, GIVE_UP_BLIND).
 *  - While captures are destroyed in a worker, a reset() that their destructor makes must count as
 *    made inside a callback: two closures that hold each other's subscription wait for each other for
 *    ever otherwise (DTOR_WAITS).  In other threads it may wait (DTOR_WAITS_OUTSIDE fails) only because
 *    two threads never get so far: a subscription has one handle, and one thread at a time uses it.
 *    For what the same thread is destroying it must not wait.  No lock may be held that such a
 *    reset() takes.
 *  - A thread that wakes another looks at AWAITED in what its own RMW found. Looked at before that RMW, a waiter that says
 *    it in between sleeps for ever (AWAITED_BEFORE); so does one that does not say it (UNSAID).
 *  - The word outlives every snapshot and every waiter: leave touches it after its last RMW (wake).
 *
 * 2 workers dispatch 2 subscriptions from stale lists in opposite orders, EVENTS in a run; CLOSED is
 * read again before each further event.  Outside threads: one for each subscription.
 * Scenes   INSIDE (a callback may reset any subscription)  NO_OUTSIDE  TOGETHER (three outside
 *          threads, all reset subscription 0)  DEADLINE (outside threads may give up)  DTOR
 *          (destroying a closure resets the other subscription)  HAND_OVER (workers let a
 *          housekeeper destroy)
 * Checked  destroyed once; no callback after an outside reset() has returned, nor during or after
 *          destruction; an outside reset() that returns finds the destruction finished; a callback
 *          that closed itself gets no further event of its run; in the end all that is closed is
 *          destroyed; nobody waits for ever.
 * Mutants  marked M
 * Run: spin -a [-D..] gate_destroy.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef EVENTS
#define EVENTS 1
#endif
#define CLOSED   16
#define DEFERRED 32
#define DEAD     64
#define GONE    128
#define AWAITED 256
#define COUNT(w) ((w) & 15)
#define OVER(w)  (((w) & CLOSED) && COUNT(w) == 0)
#define HOUSEKEEPER 5

short word[2];
byte asleep[6];                     /* 1 + the word a thread sleeps on                          */
/* ---- ghosts ---- */
byte running[2], begun[2], finished;
bool ended[2], returned[2], handed[2];

#ifdef WAKE_ONE                     /* M, with TOGETHER */
#define WOKEN x = 0; break
#else
#define WOKEN skip
#endif
inline wake(s) {
  atomic { x = 0; do :: x < 6 -> if :: asleep[x] == s+1 -> asleep[x] = 0; WOKEN :: else fi; x++
                     :: else -> x = 0; break od }
}
inline wake_awaited(s, seen) { if :: (seen) & AWAITED -> wake(s) :: else fi }
inline futex_wait(s) {
  if
#ifndef UNSAID                      /* M */
  :: !(w & AWAITED) -> word[s] = word[s] | AWAITED      /* and look again */
  :: w & AWAITED ->
#else
  :: true ->
#endif
     atomic { if :: word[s] == w -> asleep[me] = s+1 :: else fi };
     (!asleep[me])
  fi
}

/* ---- destroying ---- */
inline claim(s) {
#if defined(NO_CAS)                 /* M: look, then set */
  won = !(word[s] & DEAD) && COUNT(word[s]) == 0; atomic { word[s] = word[s] | DEAD }
#elif defined(OR)
  atomic { won = !(word[s] & DEAD); word[s] = word[s] | DEAD }
#else
  atomic { won = !(word[s] & DEAD) && COUNT(word[s]) == 0; if :: won -> word[s] = word[s] | DEAD :: else fi }
#endif
}
inline begin_destroy(s) { atomic { begun[s]++; assert(begun[s] == 1); assert(!running[s]) } }
inline set_gone(s) {
#ifdef AWAITED_BEFORE               /* M */
  seen = word[s];
  atomic { ended[s] = 1; word[s] = word[s] | GONE };
#else
  atomic { ended[s] = 1; seen = word[s]; word[s] = word[s] | GONE };
#endif
#ifndef NO_LAST_WAKE                /* M */
  wake_awaited(s, seen);
#endif
  seen = 0
}
/* With DTOR the captures of s hold the subscription of o, and those of o that of s: the reset() in the
 * inner destruction finds s DEAD. */
inline destructor_resets(other, outer) {
  atomic { word[other] = word[other] | CLOSED | DEFERRED; w = word[other] };
  if
  :: OVER(w) ->
     claim(other);
     if
     :: won ->
        won = 0;
        begin_destroy(other);
        atomic { word[outer] = word[outer] | CLOSED | DEFERRED; assert(word[outer] & DEAD) };
        set_gone(other)
     :: else
     fi
  :: else
  fi
}
inline destructor_waits(other, outer) {     /* the same reset(), taken for an outside one, unless this
                                               very thread destroys what it would wait for       */
  atomic { word[other] = word[other] | CLOSED };
  do
  :: w = word[other];
     if
     :: w & GONE -> break
     :: !(w & GONE) && OVER(w) && !(w & DEAD) ->
        claim(other);
        if
        :: won ->
           won = 0;
           begin_destroy(other);
           atomic { word[outer] = word[outer] | CLOSED; assert(word[outer] & DEAD) };
           set_gone(other)
        :: else
        fi
     :: else -> futex_wait(other)
     fi
  od
}
inline destroy(s) {
  begin_destroy(s);
#if defined(DTOR_WAITS)             /* M */
  d = 1-s; destructor_waits(d, s); d = 0;
#elif defined(DTOR_WAITS_OUTSIDE)   /* M: in workers it counts as inside, elsewhere it waits */
  d = 1-s; if :: me < 2 -> destructor_resets(d, s) :: else -> destructor_waits(d, s) fi; d = 0;
#elif defined(DTOR)
  d = 1-s; destructor_resets(d, s); d = 0;
#endif
  set_gone(s)
}
inline dispose(s) {                 /* the claim is won */
  won = 0;
#ifdef HAND_OVER
  if :: me < 2 -> handed[s] = 1 :: else -> destroy(s) fi
#else
  destroy(s)
#endif
}

/* ---- the gate ---- */
inline leave(s) {
  atomic { word[s]--; w = word[s] };
  if
#if defined(QUIET)
  :: OVER(w) && (w & DEFERRED) && !(w & DEAD) -> claim(s); if :: won -> dispose(s) :: else fi
  :: OVER(w) && !(w & DEFERRED) && !(w & DEAD) -> wake_awaited(s, w)
#else
  :: OVER(w) ->
     if :: w & DEFERRED -> claim(s) :: else fi;
#ifdef NO_WAKE                      /* M: only the deferred case wakes */
     if :: won -> dispose(s) :: else fi
#else
     if :: won -> dispose(s) :: else -> wake_awaited(s, w) fi
#endif
#endif
  :: else
  fi;
  w = 0
}
inline reset_inside(s) {
  atomic { word[s] = word[s] | CLOSED | DEFERRED; w = word[s] };
  if
#ifndef LAST_ONE_ONLY               /* M: leaves it to the last one out, though nobody may be in */
  :: OVER(w) -> claim(s); if :: won -> dispose(s) :: else fi
#endif
  :: else
  fi;
  w = 0
}

proctype worker(byte me; byte a; byte b) {
  byte s = a, o, n, k, x, d; short w, seen;
  bool ok, won, mine;
  do
  :: n < 2 ->
#ifdef CHECK_THEN_ENTER             /* M */
     ok = !(word[s] & CLOSED);
     if :: ok -> word[s]++ :: else fi;
#else
     atomic { ok = !(word[s] & CLOSED); word[s]++ };
     if :: ok -> skip :: else -> leave(s) fi;
#endif
     if
     :: ok ->
        do
        :: k < EVENTS ->
           atomic { running[s]++; assert(!begun[s]); assert(!returned[s]); assert(!mine) };
#ifdef INSIDE
           if
           :: skip
           :: atomic { o = s; mine = 1 }; reset_inside(o)
           :: o = 1-s; reset_inside(o)
           fi;
           o = 0;
#endif
           atomic { assert(!begun[s]); running[s]--; k++ };
#ifndef NO_SECOND_LOOK              /* M, with EVENTS=2 */
           if :: word[s] & CLOSED -> break :: else fi
#endif
        :: else -> break
        od;
        atomic { k = 0; mine = 0 };
        leave(s)
     :: else
     fi;
     atomic { n++; s = b; ok = 0 }
  :: else -> break
  od;
  finished++
}

proctype outside(byte me; byte s) {
  byte x, d; short w, seen;
  bool won;
#ifdef CLOSE_BY_STORE               /* M: load, then store */
  w = word[s]; word[s] = w | CLOSED; w = 0;
#else
  atomic { word[s] = word[s] | CLOSED };
#endif
  do
  :: w = word[s];
     if
#ifdef COUNT_FIRST                  /* M, with QUIET */
     :: COUNT(w) -> futex_wait(s)
     :: !COUNT(w) && (w & GONE) -> break
#else
     :: w & GONE -> break
     :: !(w & GONE) && COUNT(w) -> futex_wait(s)
#endif
     :: !(w & GONE) && !COUNT(w) && (w & DEAD) ->
#ifdef DEAD_IS_ENOUGH               /* M */
        break
#else
        futex_wait(s)
#endif
     :: !COUNT(w) && !(w & DEAD) ->
        claim(s);
        if
        :: won -> dispose(s); break
#ifdef CAS_ONCE                     /* M */
        :: else -> do :: w = word[s]; if :: w & GONE -> break :: else -> futex_wait(s) fi od; break
#else
        :: else
#endif
        fi
     fi
#ifdef DEADLINE
  :: true ->                        /* it may give up whenever it is awake */
#if defined(GIVE_UP_BLIND)          /* M */
     atomic { word[s] = word[s] | DEFERRED };
#elif !defined(FORGET)              /* M */
     reset_inside(s);
#endif
     goto out
#endif
  od;
  atomic { returned[s] = 1; assert(ended[s]); assert(!running[s]) };
out:
  finished++
}

#if defined(NO_OUTSIDE)
#define THREADS 2
#elif defined(TOGETHER)
#define THREADS 5
#else
#define THREADS 4
#endif
#ifdef HAND_OVER
proctype housekeeper(byte me) {
  byte x, d; short w, seen;
  bool won;
  do
  :: atomic { handed[0] -> handed[0] = 0 }; destroy(0)
  :: atomic { handed[1] -> handed[1] = 0 }; destroy(1)
  :: atomic { finished == THREADS && !handed[0] && !handed[1] -> break }
  od
}
#endif
init {
  atomic {
    run worker(0, 0, 1); run worker(1, 1, 0);
#ifndef NO_OUTSIDE
    run outside(2, 0);
#ifdef TOGETHER
    run outside(3, 0); run outside(4, 0);
#else
    run outside(3, 1);
#endif
#endif
#ifdef HAND_OVER
    run housekeeper(HOUSEKEEPER);
#endif
  };
  (_nr_pr == 1);
  assert(!COUNT(word[0]) && !COUNT(word[1]));
  assert(!(word[0] & CLOSED) || (ended[0] && (word[0] & GONE)));
  assert(!(word[1] & CLOSED) || (ended[1] && (word[1] & GONE)))
}
