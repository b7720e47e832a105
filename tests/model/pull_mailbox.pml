/* pull_mailbox.pml -- a mailbox that one thread drains itself: how does it sleep without missing an
 * event, and without a system call for each event?  (engine/pull.*)
 *
 *   feeder (one lane each)                  reader
 *     lane = published + 1                    again: key = k
 *     l_attended                                      told.exchange(0)
 *     leased? done     (the reader is awake)  leased = 0                  (it sleeps, soon)
 *     told.exchange(1) == 0?                  HEAVY
 *       k++ ; futex_wake(k)                   look at the lanes; at stopped
 *       a descriptor is there: write to it    nothing: futex_wait(k, key); again
 *   stop: stopped = 1; tell, as a feeder      something: leased = 1; drain
 *
 *   With a descriptor the reader polls it instead: leased stays 0; read it, drain, then as above
 *   to HEAVY, look; something is left: write to it.
 *
 * l_attended keeps the store to the lane before the look at leased.  Default: it costs nothing and HEAVY is
 * membarrier.  -DFENCE: both are full fences of the thread itself.
 * Memory: TSO, a FIFO store buffer for each thread.  The reader's exchange of told is a plain store
 * here, which is weaker.
 *
 * What the model taught: key, told, leased, HEAVY, in this order.
 *  - told is cleared before each sleep, not after waking (TOLD_LATE): a feeder that is late with its
 *    exchange would find 0 while the reader is awake, and told would stay 1 through the next sleep.
 *  - key before told (KEY_AFTER_TOLD): a late feeder's event may be consumed already.  If it sets told
 *    and moves the key between told = 0 and the reading of the key, the reader sleeps beside told ==
 *    1, which all other threads take for "somebody wakes it".  Read before, the key has moved: the
 *    reader wakes once for nothing instead of never.
 *  - told before leased (TOLD_SECOND): otherwise two system calls for one sleep, but no loss.
 *  - Relacy (pull_relacy.cpp) adds: told is cleared by an exchange.  With a store, in the fence form, a
 *    stop() that finds told == 1 and goes is ordered before the store, but what it said before
 *    (stopped = 1) is not: the reader may look, see nothing and sleep for ever.
 *
 * Size     FEEDERS, EVENTS each
 * Scenes   STOP  TIMEOUT (a wait may end by itself)  FD (from some time on the reader polls)
 * Checked  the reader gets every event and sees stop(); at most one futex_wake per sleep
 * Mutants  marked M
 * Run: spin -a [-D..] pull_mailbox.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef FEEDERS
#define FEEDERS 2
#endif
#ifndef EVENTS
#define EVENTS 2
#endif
#define READER  FEEDERS
#define STOPPER (FEEDERS+1)
#define LANE(f) (f)
#define LEASED  FEEDERS
#define TOLD    (FEEDERS+1)
#define STOPPED (FEEDERS+2)
#define FDS     (FEEDERS+3)         /* the mailbox has a descriptor                            */

byte mem[FEEDERS+4];
chan sb[FEEDERS+2] = [2] of { byte, byte };
bool moved, asleep, readable;       /* k has moved since the reader read it; futex; descriptor */
byte owed;                          /* ghost: sleeps whose end nobody has undertaken yet (more
                                       than two cannot be undertaken before the next begins)   */

proctype cpu(byte t) {              /* a buffered store becomes visible at any time            */
  byte a, v;
end: do
  :: atomic { sb[t]?a,v -> mem[a] = v; a = 0; v = 0 }
  od
}
#ifdef FENCE
#define l_attended (empty(sb[me]))
#define HEAVY (empty(sb[READER]))
#else
#define l_attended skip
#define HEAVY (empty(sb[READER])); j = 0; do :: atomic { empty(sb[j]) -> j++; if :: j == FEEDERS -> j = 0; break :: else fi } od
#endif
#ifdef NO_L2                        /* M, with FENCE */
#undef l_attended
#define l_attended skip
#endif
#ifdef NO_HEAVY                     /* M */
#undef HEAVY
#define HEAVY skip
#endif

/* ---- feeders ---- */
inline tell() {
  atomic {
    empty(sb[me]) -> old = mem[TOLD]; mem[TOLD] = 1;
#ifdef NO_TOLD                      /* M: everybody wakes */
    old = 0;
#endif
    if :: !old -> assert(owed); owed-- :: else fi
  };
  if
  :: !old ->
#ifndef NO_KEY                      /* M: a wake-up that finds nobody asleep is lost */
     moved = 1;
#endif
     asleep = 0;
#ifdef FD
     if :: mem[FDS] -> readable = 1 :: else fi
#endif
  :: else
  fi;
  old = 0
}
proctype feeder(byte me) {
  byte p, old;
  do
  :: p < EVENTS ->
     atomic { p++; sb[me]!LANE(me),p };
     l_attended;
     if :: mem[LEASED] -> skip :: else -> tell() fi
#ifdef STOP
  :: break
#endif
  :: else -> break
  od
}
#ifdef STOP
proctype stopper() {
  byte me = STOPPER, old;
  sb[me]!STOPPED,1;
#ifndef STOP_SILENTLY               /* M */
  tell()
#endif
}
#endif

/* ---- the reader ---- */
#define WAITS(f) (mem[LANE(f)] > c[f])
inline look() {                     /* on the lanes' counters, one after another */
  j = 0; left = 0;
  do :: j < FEEDERS -> left = left || WAITS(j); j++ :: else -> j = 0; break od
}
inline prepare_wait() {
#if !defined(KEY_LATE) && !defined(KEY_AFTER_TOLD)
  moved = 0;                        /* key = k                                                 */
#endif
  atomic { if :: owed < 2 -> owed++ :: else fi };
#if !defined(TOLD_LATE) && !defined(TOLD_SECOND)
  sb[READER]!TOLD,0;
#endif
#ifdef KEY_AFTER_TOLD               /* M */
  (empty(sb[READER])); moved = 0;
#endif
  sb[READER]!LEASED,0;
#ifdef TOLD_SECOND                  /* M */
  (empty(sb[READER])); sb[READER]!TOLD,0;
#endif
  HEAVY
}
inline drain() {                    /* some or all of what is there */
  do
  :: WAITS(0) -> c[0]++
  :: FEEDERS > 1 && WAITS(FEEDERS-1) -> c[FEEDERS-1]++
  :: break
  od
}
#ifdef STOP                          /* it may publish less, and the reader waits for more     */
#define ALL false
#else
#define ALL (c[0] == EVENTS && c[FEEDERS-1] == EVENTS)
#endif
proctype reader() {
  byte j, c[FEEDERS];
  bool left;
wait:
  do
  :: ALL -> goto out
  :: else ->
     prepare_wait();
#ifndef NO_RECHECK                  /* M */
     look();
     if :: left -> break :: else fi;
#endif
#ifdef STOP
     if :: mem[STOPPED] -> goto out :: else fi;
#endif
#ifdef KEY_LATE                     /* M */
     moved = 0;
#endif
     atomic { if :: !moved -> asleep = 1 :: else fi };
     if
     :: !asleep -> skip
#ifdef TIMEOUT
     :: atomic { asleep = 0; goto awake }
#endif
     fi
  od;
#ifdef TIMEOUT
awake:
#endif
  sb[READER]!LEASED,1;
#ifdef TOLD_LATE                    /* M */
  sb[READER]!TOLD,0;
#endif
  left = 0;
  drain();
#ifdef FD
  if :: goto wait :: skip fi;
  sb[READER]!FDS,1;
rearm:
#ifdef REARM_BLINDLY                /* M */
  sb[READER]!TOLD,0; sb[READER]!LEASED,0; HEAVY;
#else
  prepare_wait();
  look();
#endif
#ifdef READ_LAST                    /* M: the descriptor is read after the look */
  readable = 0;
#endif
  if :: left -> readable = 1; left = 0 :: else fi;
  if :: ALL -> goto out :: else fi;
#ifdef STOP
  if :: mem[STOPPED] -> goto out :: else fi;
#endif
  (readable);
#ifndef READ_LAST
  readable = 0;
#endif
  drain();
  goto rearm;
#else
  goto wait;
#endif
out:
  skip
}
init { atomic {
  byte t = 0;
  mem[LEASED] = 1;
#ifdef STOP
  owed = 1;                         /* stop() tells, whether the reader sleeps or not          */
#endif
  do :: t < FEEDERS -> run feeder(t); t++ :: else -> t = 0; break od;
  do :: t < FEEDERS+2 -> run cpu(t); t++ :: else -> t = 0; break od;
  run reader();
#ifdef STOP
  run stopper()
#endif
} }
