/* presence.pml -- is any thread still inside, when another has closed the door and waited?
 * (engine/system/presence.hpp)
 *
 *   a thread, on its own record                     the thread that closes
 *     depth = depth + 1                               open = 0
 *     p_inside                                        awaited += 1
 *     open? use what the door guards                  HEAVY
 *     depth = depth - 1                               each record:
 *     was that the last? p_awaited                      l = left
 *     awaited? left += 1; key += 1; wake                k = key ; depth == 0 or left != l? next
 *   at its end: the record is free, for another         sleep while key is still k, and look again
 *                                                     awaited -= 1 ; nobody uses what was guarded
 *
 * Default: the light fences cost nothing and HEAVY is membarrier.  -DFENCE: all are full fences of the
 * thread itself.  Memory: TSO, a FIFO store buffer for each thread and for the one that closes.
 * The door opens and closes ROUNDS times; W threads enter ENTRIES times each, nested or not, and may
 * give their record back after each entry (-DREUSE), so that they change places.
 *
 * Checked  after the wait nobody uses what was guarded while the door was open; the thread that waits
 *          sleeps only for the entry that it found, or for one that began as it looked; no wake-up is
 *          lost; a record has one owner.
 * -DHANDLER: a signal handler enters and leaves in the middle of its own thread's enter() and leave().
 *          The record is for this once, as after the thread's records are gone, and another thread
 *          takes one too; or it lasts (-DLASTING).  A thread and its handler never run at once, so
 *          memory is not modelled.  The code keeps handlers out while a record is made (malloc).
 * Mutants  marked M
 * Run: spin -a [-D..] presence.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef W
#define W 2
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifndef HANDLER
#define CLOSER W                   /* its store buffer                                        */
#define DEPTH(r) (r)               /* mem[0 .. W-1]: the records' depths                      */
#define TAKEN(r) (W+(r))
#define OPEN (2*W)
#define AWAITED (2*W+1)
byte mem[2*W+2];
chan sb[W+1] = [3] of { byte, byte };
byte left[W], key;                 /* changed by read-modify-writes only                      */
bool asleep;
byte using, closed, over;          /* ghosts: inside what is guarded; the closer has waited   */
byte began[W], owners[W];          /* ghosts: entries begun on a record; threads that have it */

proctype cpu(byte t) {             /* a buffered store becomes visible at any time            */
  byte a, v;
end: do
  :: atomic { sb[t]?a,v -> mem[a] = v; a = 0; v = 0 }
  od
}
#ifdef FENCE
#define LIGHT (empty(sb[me]))
#define HEAVY (empty(sb[CLOSER]))
#else
#define LIGHT skip
#define HEAVY (empty(sb[CLOSER])); j = 0; do :: atomic { empty(sb[j]) -> j++; if :: j > W -> j = 0; break :: else fi } od
#endif
#ifdef NO_P_INSIDE                 /* M, with FENCE */
#define p_inside skip
#else
#define p_inside LIGHT
#endif
#ifdef NO_P_AWAITED                /* M, with FENCE */
#define p_awaited skip
#else
#define p_awaited LIGHT
#endif

proctype thread(byte me) {
  byte n, r, seen; bool gone;
  r = W;
  do
  :: n < ENTRIES ->
     if
     :: r == W ->                  /* takes any record that is free */
#ifdef TAKE_BY_LOAD                /* M */
        if :: mem[TAKEN(0)] == 0 -> r = 0 :: W > 1 && mem[TAKEN(W-1)] == 0 -> r = W-1 fi;
        sb[me]!TAKEN(r),1;
#else
        atomic { empty(sb[me]);
          if :: mem[TAKEN(0)] == 0 -> r = 0 :: W > 1 && mem[TAKEN(W-1)] == 0 -> r = W-1 fi; mem[TAKEN(r)] = 1 };
#endif
        atomic { owners[r]++; assert(owners[r] == 1) }
     :: else -> skip
     fi;
     n++;
#ifdef WORD_FIRST                  /* M: looks at the door before it has entered */
     seen = mem[OPEN];
#endif
     atomic { nfull(sb[me]); sb[me]!DEPTH(r),1; began[r]++ };
#ifndef WORD_FIRST
     p_inside;
     seen = mem[OPEN];
#endif
     if
     :: seen -> atomic { using++; assert(!closed) }
     :: else -> skip
     fi;
     if                            /* a call within the call */
     :: sb[me]!DEPTH(r),2;
        LIGHT;
#ifdef FLAT                        /* M: a nested call's end says that nobody is inside */
        sb[me]!DEPTH(r),0
#else
        sb[me]!DEPTH(r),1
#endif
     :: skip
     fi;
     if :: seen -> assert(!closed); atomic { using--; seen = 0 } :: else -> skip fi;
#ifdef GIVEN_EARLY                 /* M: the record is given back before it shows that nobody is inside */
     if :: atomic { nfull(sb[me]); owners[r]--; sb[me]!TAKEN(r),0 }; gone = 1 :: skip fi;
#endif
     sb[me]!DEPTH(r),0;
     p_awaited;
     if
     :: mem[AWAITED] != 0 ->
#ifndef NO_LEFT                    /* M */
        atomic { empty(sb[me]) -> left[r]++ };
#endif
        atomic { empty(sb[me]) -> key++
#ifndef NO_WAKE                    /* M */
          ; asleep = 0
#endif
        }
     :: else -> skip
     fi;
#ifdef GIVEN_EARLY
     if :: gone -> atomic { r = W; gone = 0 } :: else -> skip fi
#elif defined(REUSE)
     if :: atomic { nfull(sb[me]); owners[r]--; sb[me]!TAKEN(r),0 }; r = W :: skip fi
#endif
  :: else -> break
  od;
  atomic { empty(sb[me]) -> over++ }
}

inline set_awaited(to) { atomic { empty(sb[CLOSER]) -> mem[AWAITED] = to } }
proctype closer() {
  byte round, r, l, k, j, first;
  do
  :: round < ROUNDS ->
     round++;
     sb[CLOSER]!OPEN,0;
#ifdef HEAVY_FIRST                 /* M: before it says that it waits */
     HEAVY;
#endif
#ifndef NOT_SAID                   /* M */
     set_awaited(1);
#endif
#if !defined(NO_HEAVY) && !defined(HEAVY_FIRST)   /* M */
     HEAVY;
#endif
     do
     :: r < W ->
        atomic { l = left[r]; first = began[r] };
        do
        ::
#ifndef KEY_LATE                   /* M: the key is read after the look */
           k = key;
#endif
           if
           :: mem[DEPTH(r)] == 0 -> break
           :: else -> skip
           fi;
           if
           :: left[r] != l -> break
           :: else -> skip
           fi;
#ifdef KEY_LATE
           k = key;
#endif
           atomic { if :: key == k -> assert(began[r] <= first + 1); asleep = 1 :: else fi };
           (!asleep)
        od;
        atomic { r++; l = 0; k = 0; first = 0 }
     :: else -> atomic { r = 0; break }
     od;
     set_awaited(0);
     atomic { closed = 1; assert(using == 0) };
     atomic { closed = 0; sb[CLOSER]!OPEN,1 }
  :: else -> break
  od;
  (over == W);                     /* in the end nobody is inside and no record is lost */
  assert(mem[0] == 0 && mem[W-1] == 0)
}
init { atomic {
  byte t = 0;
  mem[OPEN] = 1;
  do :: t < W -> run thread(t); t++ :: else -> t = 0; break od;
  do :: t <= W -> run cpu(t); t++ :: else -> t = 0; break od;
  run closer()
} }

#else
/* ---- a handler in the middle; records for one entry only ---- */
#define NONE 3
byte depth[3], taken[3], owners[3];
byte mine = NONE;                  /* the thread's record                                     */
bool running;                      /* the handler runs                                        */
byte nested;                       /* of the mutant: entries counted beside the record        */
bool over;

#define FREE_ONE(x) atomic { if :: !taken[0] -> x = 0 :: taken[0] && !taken[1] -> x = 1 \
  :: taken[0] && taken[1] -> assert(!taken[2]); x = 2 fi; taken[x] = 1; owners[x]++; assert(owners[x] == 1) }
#define GIVE(x) atomic { assert(owners[x] == 1); owners[x]--; taken[x] = 0 }

inline enter() {                   /* d: the depth before                                     */
  r = mine;
  if
  :: r != NONE ->
#ifdef SHOWN_LATE                  /* M: entries are counted beside the record, which is written after */
     nested++;
     if :: nested == 1 -> depth[r] = 1 :: else -> skip fi
#else
     d = depth[r];
     depth[r] = d + 1
#endif
  :: else ->
     FREE_ONE(r);
     depth[r] = 1;
     mine = r
  fi
}
inline leave() {
  r = mine;
#ifdef SHOWN_LATE
  nested--;
  if :: nested == 0 -> depth[r] = 0 :: else -> skip fi
#else
  d = depth[r];
  if
#ifdef LASTING
  :: true -> depth[r] = d - 1
#else
  :: d > 1 -> depth[r] = d - 1
  :: else ->
#ifdef FORGOTTEN_LATE              /* M: a handler can still find the record that is given back */
     depth[r] = 0;
     GIVE(r);
     mine = NONE
#else
     mine = NONE;
     depth[r] = 0;
     GIVE(r)
#endif
#endif
  fi
#endif
}
proctype thread() provided (!running) {
  byte n, r, d;
  do
  :: n < 2 ->
     n++;
     enter();
     assert(depth[mine] > 0);
     enter();                      /* nested */
     leave();
     assert(depth[mine] > 0);
     leave()
  :: else -> break
  od;
  atomic { assert(!depth[0] && !depth[1] && !depth[2]); over = 1 }
}
proctype handler() provided (running) {
  byte r, d;
  enter();
  assert(mine != NONE && depth[mine] > 0);
  leave();
  running = 0
}
active proctype signals() {        /* comes at any step, twice at most                        */
end_first:
  atomic { !running && !over -> running = 1; run handler() };
end_second:
  atomic { !running && !over -> running = 1; run handler() }
}
#ifdef LASTING
init { atomic { taken[0] = 1; mine = 0; run thread() } }
#else
proctype other() {                 /* takes a record too, and keeps it */
  byte r;
  FREE_ONE(r);
  atomic { assert(depth[r] == 0); taken[r] = 1 }
}
init { atomic { run thread(); run other() } }
#endif
#endif
