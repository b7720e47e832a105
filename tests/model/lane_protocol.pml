/* lane_protocol.pml -- one lane per (publishing thread, channel) with single-writer words: a publish
 * that finds its channel leased makes no RMW, no fence, no system call.  Question: is an event ever
 * lost, stranded, delivered twice or admitted over the bound; are flush() and stop() honest; may a
 * lane be used again by another thread?
 *
 *   publish (one thread per lane)                worker
 *     mode open?  room?                            take a signal (then the lease, RMW) or a passed lease
 *     lane = busy                     l_closing           sees an event: pass the other leases on;
 *     mode still open? else undo, refuse             callbacks; consumed++     l_waiting   waiters? wake them
 *     enqueue; lane = published + 1   l_attended           sees none: leased = 0 for all; parked |= me;
 *     leased? done                                   HEAVY; recheck lanes, passed leases, signals;
 *     signals |= channel; wake one worker            nothing: futex_wait
 *   flush: waiters++; HEAVY; watermarks; wait    stop: mode = closing; HEAVY; no lane busy; as flush
 *
 * l_closing, l_attended, l_waiting keep a store before a later load.  Default: they cost nothing, and HEAVY is membarrier: every
 * thread passes one full barrier between call and return (one after another).  -DFENCE: l_closing, l_attended, l_waiting and
 * HEAVY are full fences of the thread itself.
 * Memory: TSO, a FIFO store buffer of SB entries per publisher and worker; an RMW needs it empty.
 * The queue is its counters: its tail is visible before the lane word, never after.
 * A worker that looks at its leases sees nothing at one instant: only it empties them, so that is no
 * restriction.  One event per batch.  2 channels, 2 lanes each, up to 2 workers; properties are
 * assertions and valid end states (nobody waits for ever beside work).
 *
 * Size    NP threads (3 with REUSE), NE events each (NE0: thread 0), NCH channels, NW workers, CAP, SB
 * Scenes  FLUSH  STOP  BLOCK (a full lane waits; WAKE_AT: on a word of its own)  REUSE (lanes come
 *         back; POOL of them)  LATE (lanes are listed while the worker runs)  TAILS (tail and lane word
 *         apart)  SPURIOUS (a dequeue may fail)  STUCK (a callback of channel 0 never returns)  STUCK_LATER (one published after flush
 *         was called never returns)  FROZEN (a publisher stops for ever before it looks at leased)
 *         REENTRANT (a callback publishes)  COOL (leases are also given up without parking)
 *         READY (after its callbacks a channel is passed on too, so that the next in turn can be served)
 *         ENDLESS + PROGRESS (refused publishers never stop; stop() must return: models.txt)
 * Mutants, each must fail: marked M below, with the scene that shows it in models.txt
 * Run: spin -a [-D..] lane_protocol.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 */
#ifndef NP
#define NP 2
#endif
#ifndef NE
#define NE 1
#endif
#ifndef NE0
#define NE0 NE
#endif
#ifndef NCH
#define NCH 1
#endif
#ifndef NW
#define NW 1
#endif
#ifndef CAP
#define CAP 9
#endif
#ifndef SB
#define SB 3
#endif
#ifndef POOL
#define POOL 2
#endif
#define NT (NP+NW)
#if NP > 1 || defined(REENTRANT)
#define LPC 2
#else
#define LPC 1
#endif
#define NL 4                      /* lane 2*c+q is lane q of channel c                        */
#define OPEN 0
#define CLOSING 1

/* ---- words written by plain stores, one writer at a time ---- */
byte mem[4*NL+2];
#define LANE(l)   (l)             /* 3*published + 0 idle, 1 busy, 2 busy and enqueued        */
#define CONS(l)   (NL+(l))        /* consumed, by the lease holder                            */
#define LIVE(l)   (2*NL+(l))      /* lane in use: taken by RMW, given back by a store         */
#define WANT(l)   (3*NL+2+(l))    /* WAKE_AT: 1 + the consumed its blocked publisher waits for */
#define LEASED(c) (3*NL+(c))      /* taken by RMW, given back by a store                      */
#define PUB(v)    ((v)/3)
#define TAIL(v)   (((v)+1)/3)
#define BUSY(v)   ((v)%3)
#define BIT(x)    (1<<(x))
chan sb[NT] = [SB] of { byte, byte };
/* ---- words changed by RMW only ---- */
byte signals, passed;             /* sets of channels: "look at me"; a lease for any worker   */
byte parked, searching;           /* one word in the product                                  */
byte waiters, nlanes;
byte mode[2]; bool quit;          /* written by stop() alone, followed by RMWs                */
/* ---- futex words, as "moved since it was read", and which workers sleep ---- */
bool wmoved[3], wsleeps[3], fmoved[4], fsleeps[4], woke[NT+2];
/* ---- ghosts ---- */
byte com[NL], acc[NL], del[NL];   /* events enqueued, publishes returned, callbacks finished  */
byte first[NL], mark[NL];         /* where the lane's present owner began; flush's duty       */
byte own[2], ended, gone;
bool stuck, stopped, flushing, flushed;

#ifdef FENCE
#define FULL_FENCE(t) (empty(sb[t]));
#define HEAVY(a,b)
#else
#define FULL_FENCE(t)
#define HEAVY(a,b) j = a; do :: atomic { empty(sb[j]) -> j++; if :: j == b -> j = 0; break :: else fi } od;
#endif
#ifdef NO_L1                      /* M, with FENCE */
#define l_closing(t)
#else
#define l_closing(t) FULL_FENCE(t)
#endif
#ifdef NO_L2                      /* M, with FENCE */
#define l_attended(t)
#else
#define l_attended(t) FULL_FENCE(t)
#endif
#ifdef NO_L3                      /* M, with FENCE */
#define l_waiting(t)
#else
#define l_waiting(t) FULL_FENCE(t)
#endif

#ifdef FROZEN
#define FREEZE(n) if :: t == 0 && !stuck -> stuck = 1; end_frozen##n: false :: skip fi;
#else
#define FREEZE(n)
#endif

proctype cpu(byte t) {            /* a buffered store becomes visible at any time             */
  byte a, v;
end: do
  :: atomic { sb[t]?a,v ->
       assert(a >= NL || PUB(v) >= PUB(mem[a]));            /* ledgers never go backwards   */
       assert(a < NL || a >= 2*NL || v >= mem[a]);
       mem[a] = v; a = 0; v = 0 }
  od
}

/* ---- waking ---- */
/* The idle word {parked, searching, epoch} is one word; woke[t]: t has woken a worker since the word
 * last changed; the engine remembers which park it has ended (wake_once.pml).  Nobody relies on another
 * thread's wake-up unless that worker has come back itself. */
#ifdef WAKE_IF_NONE_AWAKE         /* M: "another worker is awake, so it need not be woken" */
#define MAY_WAKE(t) (parked == BIT(NW)-1 && !woke[t])
#else
#define MAY_WAKE(t) (searching == 0 && parked && !woke[t])
#endif
#ifdef CLAIM_FIRST                /* M, with FROZEN: the waker marks the worker as awake, then wakes it */
#define MARK(t,w) parked = parked & ~BIT(w); searching++
#else
#define MARK(t,w) woke[t] = 1
#endif
inline choose(t, x) {             /* one load of the idle word */
  if
  :: atomic { MAY_WAKE(t) && (parked & 1) -> MARK(t,0); x = 1 }
  :: atomic { MAY_WAKE(t) && (parked & 2) -> MARK(t,1); x = 2 }
  :: atomic { MAY_WAKE(t) && (parked & 4) -> MARK(t,2); x = 3 }
  :: atomic { !MAY_WAKE(t) -> x = 0 }
  fi
}
inline wake(x) {                  /* key++, then futex_wake: a sleeper between them would not sleep */
  atomic { if :: x -> wmoved[x-1] = 1; wsleeps[x-1] = 0; x = 0 :: else fi }
}
inline changed() {                /* part of every RMW on the idle word */
  x = 0; do :: x < NT+2 -> woke[x] = 0; x++ :: else -> x = 0; break od
}
inline wake_waiters() {
  atomic { fmoved[0] = 1; fsleeps[0] = 0; fmoved[1] = 1; fsleeps[1] = 0;
#ifdef BLOCK
           fmoved[2] = 1; fsleeps[2] = 0; fmoved[3] = 1; fsleeps[3] = 0;
#endif
         }
}
inline await(f, cond) {           /* key, condition, futex_wait(key) */
  do
  :: fmoved[f] = 0;
     if
     :: cond -> break
     :: else -> atomic { if :: !fmoved[f] -> fsleeps[f] = 1 :: else fi }; (!fsleeps[f])
     fi
  od
}

/* ---- publishing ---- */
#ifdef FLUSH
#define RETURNED(l) acc[l]++
#else
#define RETURNED(l) skip
#endif
#define GO 0
#define ACCEPTED 1
#define REFUSED 2
#define FULL 3
inline publish(t, c, l, p, seen, r, x) {
  r = GO;
#if defined(STOP) && !defined(NO_EARLY)                     /* M, with PROGRESS               */
  if :: mode[c] != OPEN -> r = REFUSED :: else fi;
#endif
  if
  :: r == GO && p - seen >= CAP ->
     atomic { seen = mem[CONS(l)];
              if :: p - seen >= CAP -> r = FULL;
#ifdef NEVER_REFUSES_EARLY                                  /* M: shows that a stale count refuses early */
                    assert(com[l] - del[l] >= CAP)
#endif
                 :: else fi }
  :: else
  fi;
#ifdef STOP
#ifdef STATE_FIRST                                          /* M */
  if :: r == GO && mode[c] != OPEN -> r = REFUSED :: else fi;
#endif
  if
  :: r == GO ->
     sb[t]!LANE(l),3*p+1;                                   /* announce                     */
     l_closing(t)
#ifndef STATE_FIRST
     if :: mode[c] != OPEN -> r = REFUSED; sb[t]!LANE(l),3*p :: else fi
#endif
  :: else
  fi;
#endif
  if
  :: r == GO ->
#ifdef TAILS
     sb[t]!LANE(l),3*p+2;                                   /* enqueue                      */
#endif
     atomic { sb[t]!LANE(l),3*p+3; p++; com[l]++;           /* commit                       */
              assert(!stopped); assert(com[l] - del[l] <= CAP) };
     FREEZE(1)
     l_attended(t)
     if
     :: atomic { mem[LEASED(c)] -> RETURNED(l) }            /* the steady state ends here   */
     :: else ->
        if
        :: atomic { signals & BIT(c) -> skip }              /* somebody has signalled       */
        :: atomic { !(signals & BIT(c)) -> skip };
#ifdef CLAIM_CHANNEL                                        /* M, with FROZEN: ready.exchange(1), then push */
           atomic { empty(sb[t]) -> if :: mem[LEASED(c)] -> x = 9 :: else mem[LEASED(c)] = 1 fi };
           FREEZE(4)
           if :: x == 9 -> skip :: else -> atomic { passed = passed | BIT(c) } fi;
           x = 0
#else
           atomic { empty(sb[t]) -> signals = signals | BIT(c) }
#endif
        fi;
        FREEZE(2)
        choose(t, x);
        FREEZE(3)
        atomic { wake(x); RETURNED(l) }
     fi;
     r = ACCEPTED
  :: else
  fi
}
proctype publisher(byte i) {
  byte t = i;
  byte k, c, l, r, j, x;
  byte p[2], seen[2];
#ifdef REUSE
  do                                                        /* claim a lane, then: is it drained? */
  :: l < POOL && !mem[LIVE(l)] ->
#ifdef DRAINED_FIRST                                        /* M */
     if :: PUB(mem[LANE(l)]) == mem[CONS(l)] -> skip :: else -> goto out fi;
#endif
     atomic { empty(sb[i]) -> r = mem[LIVE(l)]; mem[LIVE(l)] = 1 };
     if
     :: r == 0 ->
#if defined(DRAINED_FIRST) || defined(REUSE_UNDRAINED)      /* M */
        break
#else
        if
        :: PUB(mem[LANE(l)]) == mem[CONS(l)] -> break
        :: else -> sb[i]!LIVE(l),0; l++
        fi
#endif
     :: else -> r = 0; l++
     fi
  :: l < POOL && mem[LIVE(l)] -> l++
  :: l == POOL -> goto out                                  /* no_memory                    */
  od;
  atomic { p[0] = PUB(mem[LANE(l)]); seen[0] = mem[CONS(l)]; first[l] = p[0] };
#endif
#ifdef LATE
  atomic { l = nlanes; nlanes++ };
#endif
  do
  :: k < (i == 0 -> NE0 : NE) ->
#if !defined(REUSE) && !defined(LATE)
#ifdef SPLIT
     c = i;
#else
     if :: c = 0 :: NCH > 1 -> c = 1 fi;
#endif
     l = 2*c + i;
#endif
     publish(i, c, l, p[c], seen[c], r, x);
#ifdef BLOCK
     if
     :: r == FULL ->                                        /* not busy while it waits      */
#ifdef WAKE_AT                                              /* wake me when half the lane is free */
        sb[i]!WANT(l),1+p[c]-(CAP+1)/2;
#ifdef WANT_UNFENCED                                        /* M */
        skip;
#else
        (empty(sb[i]));
#endif
#else
        atomic { empty(sb[i]) -> waiters++ };
#endif
#ifndef BLOCK_NO_HEAVY                                      /* M */
        HEAVY(NP, NT)
#endif
#if defined(WAKE_AT) && defined(NO_ROOM_CHECK)              /* M */
        await(2+i, (fmoved[2+i] || mode[c] != OPEN));
#else
        await(2+i, (mem[CONS(l)] != seen[c] || mode[c] != OPEN));
#endif
#ifdef WAKE_AT
        sb[i]!WANT(l),0;
#else
        waiters--;
#endif
        k--
     :: else
     fi;
#endif
#ifdef ENDLESS
     if :: r == REFUSED -> k-- :: else fi;
#endif
     atomic { k++; r = 0;
#if !defined(REUSE) && !defined(LATE)
              c = 0; l = 0
#endif
            }
  :: else -> break
  od;
#ifdef REUSE
  sb[i]!LIVE(l),0;
out:
#endif
  ended++
}

/* ---- draining ---- */
inline gain(c) {
  held = held | BIT(c); own[c]++; assert(own[c] == 1);
  cc[2*c] = mem[CONS(2*c)]; cc[2*c+1] = mem[CONS(2*c+1)]
}
inline lose(c) { own[c]--; cc[2*c] = 0; cc[2*c+1] = 0 }
inline take_lease(c) {
#ifdef LEASE_BY_LOAD                                        /* M */
  if :: mem[LEASED(c)] == 0 -> sb[t]!LEASED(c),1; atomic { gain(c) } :: else fi
#else
  atomic { empty(sb[t]) -> if :: mem[LEASED(c)] == 0 -> mem[LEASED(c)] = 1; gain(c) :: else fi }
#endif
}
inline take_signal(c) {
  atomic { (signals & BIT(c)) && empty(sb[t]) -> signals = signals & ~BIT(c) };
  take_lease(c)
}
inline take_passed(c) {
  atomic { (passed & BIT(c)) && empty(sb[t]) -> passed = passed & ~BIT(c); gain(c) }
}
#ifdef LATE
#define LISTED(l) (l < nlanes)
#define KNOWN(l)  (l < known)
#else
#define LISTED(l) true
#define KNOWN(l)  true
#endif
#define SEES(c,l)  ((held & BIT(c)) && LISTED(l) && TAIL(mem[LANE(l)]) > cc[l])
#define NOTHING    (!SEES(0,0) && !SEES(0,1) && !SEES(1,2) && !SEES(1,3))
#define LEFT(l)    (KNOWN(l) && PUB(mem[LANE(l)]) > mem[CONS(l)])
inline recheck(c) {               /* on the counters, never by a dequeue */
  if
  :: (rel & BIT(c)) && (LEFT(2*c) || LEFT(2*c+1)) ->
#ifdef PARK_ON_EMPTY                                        /* M */
     if :: skip :: take_lease(c) fi
#else
     take_lease(c)
#endif
  :: else
  fi
}

proctype worker(byte w) {
  byte t = NP + w;
  byte held, rel, c, l, known, j, x;
  bool srch, look, cool;
  byte cc[NL];                    /* consumed, while the lease is held */
#ifdef REENTRANT
  byte rp, rs, rr;
#endif
idle:
  do
  :: take_signal(0)
  :: take_signal(1)
  :: take_passed(0)
  :: take_passed(1)
  :: atomic { NW > 1 && NOTHING && !srch && empty(sb[t]) -> searching++; srch = 1; changed() }
  :: atomic { SEES(0,0) -> c = 0; l = 0; goto serve }
  :: atomic { SEES(0,1) -> c = 0; l = 1; goto serve }
  :: atomic { SEES(1,2) -> c = 1; l = 2; goto serve }
  :: atomic { SEES(1,3) -> c = 1; l = 3; goto serve }
#ifdef PROGRESS                   /* it takes what it sees, and does not search for ever       */
  :: atomic { NOTHING && !signals && !passed -> goto park }
#else
  :: atomic { NOTHING -> goto park }
#endif
  :: atomic { quit -> goto leave }
  od;
serve:                            /* away for a while: others must be able to do all else */
#if NW > 1
#if defined(READY) && !defined(LOOK_IF_PASSED)               /* M, with READY and STUCK */
  look = 1;                       /* what was passed on after callbacks, no worker was told of  */
#endif
  if :: srch -> atomic { empty(sb[t]) -> searching--; srch = 0; look = 1; changed() } :: else fi;
#ifndef NO_PASS                                             /* M */
  if
  :: held != BIT(c) ->
     atomic { empty(sb[t]) -> passed = passed | (held & ~BIT(c)); held = BIT(c); look = 1;
              if :: c == 0 -> lose(1) :: else -> lose(0) fi }
  :: else
  fi;
#endif
#ifndef NO_HANDOFF                                          /* M */
  if :: look && (passed || signals) -> choose(t, x); wake(x) :: else fi;
#endif
  look = 0;
#endif
#ifdef SPURIOUS
  if :: skip :: goto idle fi;
#endif
#ifdef EARLY_CONSUMED                                       /* M */
  sb[t]!CONS(l),cc[l]+1;
#endif
  atomic {                        /* the callbacks run here: one at a time, in order, once, for the right publisher */
    assert(own[c] == 1); assert(cc[l] == del[l]); assert(cc[l] >= first[l]) };
#ifdef STUCK
  if :: c == 0 && !stuck -> stuck = 1; end_stuck: false :: skip fi;
#endif
#ifdef STUCK_LATER
  if :: flushing && cc[l] >= mark[l] -> end_later: false :: skip fi;
#endif
#ifdef REENTRANT
  if :: w == 0 && rp == 0 && l == 0 -> publish(t, NCH-1, 2*NCH-1, rp, rs, rr, x); rp = 1; rr = 0 :: else fi;
#endif
#ifdef EARLY_CONSUMED
  atomic { del[l]++; cc[l]++ };
#elif defined(LEASE_BEFORE_CONSUMED)                        /* M */
  atomic { sb[t]!LEASED(c),0; del[l]++; cc[l]++; sb[t]!CONS(l),cc[l]; lose(c); held = held & ~BIT(c) };
#else
  atomic { del[l]++; cc[l]++; sb[t]!CONS(l),cc[l] };
#endif
#if defined(FLUSH) || defined(STOP) || defined(BLOCK)
  l_waiting(t)
#ifdef WAKE_AT
  if
  :: mem[WANT(l)] && cc[l] + 1 >= mem[WANT(l)] ->
#ifndef KEY_BEFORE_CONSUMED                                 /* M: the key may be seen before the count */
     (empty(sb[t]));
#endif
     atomic { fmoved[2+l%2] = 1; fsleeps[2+l%2] = 0 }
  :: else
  fi;
#endif
  if :: waiters -> (empty(sb[t])); wake_waiters() :: else fi;
#endif
#ifdef READY
  if
  :: (held & BIT(c)) && (passed || signals) ->
     atomic { empty(sb[t]) -> passed = passed | BIT(c); held = held & ~BIT(c); lose(c) }
  :: else
  fi;
#endif
  atomic { c = 0; l = 0; goto idle };
park:
#ifdef LANES_CACHED                                         /* M, with LATE */
  known = nlanes;
#endif
#ifdef RELEASE_LATE                                         /* M */
  HEAVY(0, NP)
  if :: (held & 1) && (LEFT(0) || LEFT(1)) -> goto idle :: else fi;
  if :: (held & 2) && (LEFT(2) || LEFT(3)) -> goto idle :: else fi;
#endif
#ifndef KEEP_LEASE                                          /* M */
  atomic { rel = held; held = 0;
    if :: rel & 1 -> sb[t]!LEASED(0),0; lose(0) :: else fi;
    if :: rel & 2 -> sb[t]!LEASED(1),0; lose(1) :: else fi };
#endif
#ifdef PARKED_LATE                                          /* M */
  look = passed || signals || quit;
#endif
#ifdef COOL
  if :: cool = 1; goto check :: skip fi;
#endif
#if !defined(KEY_LATE) && !defined(KEY_AFTER_PARKED)        /* M */
  wmoved[w] = 0;                  /* key, before anybody can wake me                          */
#endif
  atomic { empty(sb[t]) -> parked = parked | BIT(w); changed();
           if :: srch -> searching--; srch = 0 :: else fi };
#ifdef KEY_AFTER_PARKED
  wmoved[w] = 0;
#endif
check:
#ifndef NO_HEAVY                                            /* M */
  (empty(sb[t]));
#ifdef REENTRANT
  HEAVY(0, NT)
#else
  HEAVY(0, NP)
#endif
#endif
#if defined(LATE) && !defined(LANES_CACHED)
  known = nlanes;
#endif
#if !defined(RELEASE_LATE) && !defined(NO_RECHECK)          /* M */
  recheck(0);
#if NCH > 1
  recheck(1);
#endif
#endif
  rel = 0; known = 0;
  if :: cool -> cool = 0; goto idle :: else fi;
#ifdef KEEP_LEASE
  look = passed || signals || quit;
#elif !defined(PARKED_LATE)
  look = held || passed;
  look = look || signals || quit;
#endif
#ifdef KEY_LATE
  wmoved[w] = 0;
#endif
  if
  :: look -> look = 0
  :: else ->
     atomic { if :: !wmoved[w] -> wsleeps[w] = 1 :: else fi };
end_park: (!wsleeps[w])
  fi;
  atomic { empty(sb[t]) -> srch = 1;
#ifdef CLAIM_FIRST
           if :: parked & BIT(w) -> parked = parked & ~BIT(w); searching++ :: else fi
#else
           parked = parked & ~BIT(w); searching++; changed()
#endif
         };
  goto idle;
leave:
  gone++
}

/* ---- flush and stop ---- */
inline watermarks() {             /* one instant: a later look at a lane only raises its watermark */
  atomic { do :: x < NL -> tgt[x] = PUB(mem[LANE(x)]); x++ :: else -> x = 0; break od }
}
inline not_busy() {
  (!BUSY(mem[LANE(0)]));
#if LPC > 1
  (!BUSY(mem[LANE(1)]));
#endif
#if NCH > 1
  (!BUSY(mem[LANE(2)]));
  (!BUSY(mem[LANE(3)]))
#endif
}
inline help_one(me, c) {          /* what a publisher does after l_attended, for one that has not yet */
  if :: mem[LEASED(c)] -> skip :: else -> atomic { signals = signals | BIT(c) }; atomic { choose(me, x); wake(x) } fi
}
inline help(me) {
#ifdef NO_HELP                                              /* M, with FROZEN */
  skip
#else
  help_one(me, 0);
  if :: NCH > 1 -> help_one(me, 1) :: else fi
#endif
}
#ifdef NO_WATERMARK                                         /* M, with STUCK_LATER */
#define GOAL(l) PUB(mem[LANE(l)])
#else
#define GOAL(l) tgt[l]
#endif
#define REACHED(l) (mem[CONS(l)] >= GOAL(l))
#define ALL_REACHED (REACHED(0) && REACHED(1) && REACHED(2) && REACHED(3))

#ifdef FLUSH
proctype flusher() {
  byte tgt[NL], x, j;
#ifndef VISIBLE_ONLY              /* duty: every publish that has returned by now */
  atomic { do :: x < NL -> mark[x] = acc[x]; x++ :: else -> x = 0; break od };
#endif
  waiters++;
#ifndef FLUSH_NO_HEAVY                                      /* M */
  HEAVY(0, NT)
#endif
  atomic { flushing = 1; watermarks();
    do :: x < NL -> if :: tgt[x] > mark[x] -> mark[x] = tgt[x] :: else fi; x++ :: else -> x = 0; break od };
  help(NT);
  await(0, ALL_REACHED);
  waiters--;
  atomic { flushed = 1; do :: x < NL -> assert(del[x] >= mark[x]); x++ :: else -> x = 0; break od }
}
#endif
#ifdef STOP
proctype stopper() {
  byte tgt[NL], x, j;
  mode[0] = CLOSING;
  if :: NCH > 1 -> mode[1] = CLOSING :: else fi;
  waiters++;
#ifndef STOP_NO_HEAVY                                       /* M */
  HEAVY(0, NT)
#endif
  wake_waiters();                                           /* publishers that wait for room */
#ifdef WATERMARK_EARLY                                      /* M */
  watermarks();
#endif
#ifdef DRAINED_BEFORE_BUSY                                  /* M */
  watermarks(); help(NT+1); await(1, ALL_REACHED);
#endif
#ifndef NO_BUSY_WAIT                                        /* M */
  not_busy();
#endif
#if !defined(WATERMARK_EARLY) && !defined(DRAINED_BEFORE_BUSY)
  watermarks();
#endif
#ifndef DRAINED_BEFORE_BUSY
  help(NT+1);
  await(1, ALL_REACHED);
#endif
  waiters--;
  atomic { stopped = 1; do :: x < NL -> assert(com[x] == del[x]); x++ :: else -> x = 0; break od };
  quit = 1;
  atomic { do :: x < NW -> wmoved[x] = 1; wsleeps[x] = 0; x++ :: else -> x = 0; break od };
  (gone == NW)
}
#endif
#define OVER(l) (del[l] == com[l])
#ifndef STOP
proctype monitor() {              /* blocked for ever: an event is stranded */
#ifdef FROZEN                     /* thread 0 delays its own lane only */
  (ended >= NP-1 && OVER(1) && OVER(3) && (ended == NP-1 || OVER(0) && OVER(2)))
#else
  (ended == NP && (OVER(0) || stuck) && (OVER(1) || stuck) && OVER(2) && OVER(3)
#ifdef STUCK_LATER
   || flushing
#endif
  )
#endif
}
#endif
#ifdef PROGRESS                   /* weak fairness: it returns; it is delivered */
#if defined(STOP)
ltl returns { <> stopped }
#elif defined(FLUSH)
ltl returns { <> flushed }
#else
ltl delivered { <> (ended == NP && OVER(0) && OVER(1) && OVER(2) && OVER(3)) }
#endif
#endif
init { atomic {
  byte i = 0;
#ifdef STOP
  run stopper();
#else
  run monitor();
#endif
#ifdef FLUSH
  run flusher();
#endif
  do :: i < NT -> run cpu(i); i++ :: else -> i = 0; break od;
  do :: i < NP -> run publisher(i); i++ :: else -> i = 0; break od;
  do :: i < NW -> run worker(i); i++ :: else -> i = 0; break od
} }
