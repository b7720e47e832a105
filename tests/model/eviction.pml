/* eviction.pml -- a full lane that drops its oldest events: the publisher never dequeues, it says that it
 * runs past its capacity, and the owner leaves out what is too old.  Question: is an event evicted that
 * need not be, delivered that should have gone, lost, counted twice, or its slot written while it is read?
 *
 *   publisher                                      owner (one at a time)
 *     published - seen >= limit:                     takes a run: n slots that are written, from consumed on
 *       seen = consumed; limit = CAP                 overrun > consumed:           (after the take)
 *       published - seen >= CAP:                       below = max(published, consumed + n) - CAP
 *         overrun = seen + 2*CAP; limit = 2*CAP        evicts those under below: evicted++, consumed++;
 *       published - seen >= 2*CAP: full                whole run gone: takes the next, same below
 *     slot; published++                              callbacks of the rest; consumed += rest
 *
 * overrun promises: no index from there on was published past the capacity.  It is written once for each
 * CAP events, and the owner reads the publisher's line only under it.
 * The next publisher of a recycled lane (plain, another capacity) sets overrun and capacity anew.
 * Memory: TSO, a FIFO store buffer per publisher and owner.  TAIL (slots written) is seen before WORD.
 * Reads of the account: consumed first, then evicted, so that nothing evicted is taken for delivered.
 *
 * Size    NE events, CAP, NB events of the next publisher with capacity CAPB (REUSE)
 * Mutants, each must fail: marked M below
 */
#ifndef NE
#define NE 6
#endif
#ifndef CAP
#define CAP 2
#endif
#ifndef NB
#define NB 3
#endif
#ifndef CAPB
#define CAPB 3
#endif
#ifndef SB
#define SB 4
#endif
#define WORD 0                    /* published                                                  */
#define TAIL 1                    /* slots written                                              */
#define CONS 2                    /* consumed: callbacks over, or evicted                       */
#define OVER 3                    /* overrun                                                    */
#define ECAP 4                    /* the capacity, for the owner                                */
#define EVD  5                    /* evicted, the owner's count                                 */
#define LIVE 6                    /* lane in use                                                */
byte mem[7];
chan sb[3] = [SB] of { byte, byte };
/* ghosts */
byte com, done, del, ev;          /* published; callbacks over or evicted; delivered; evicted   */
byte first = 255, room = 2*CAP;   /* where the next publisher began; the slots there are        */
bool ended;
#define HIS(c) ((c) < first -> CAP : CAPB)

proctype cpu(byte t) {
  byte a, v;
end: do :: atomic { sb[t]?a,v -> mem[a] = v; a = 0; v = 0 } od
}

inline say(t) {                   /* slot, then the word */
  atomic { sb[t]!TAIL,p+1; com++; assert(com - done <= room) };
  sb[t]!WORD,p+1;
  p++
}
proctype publisher() {            /* drop_oldest */
  byte k, p, seen;
  bool wide;
  do
  :: k < NE ->
     if
     :: p - seen >= (wide -> 2*CAP : CAP) ->
#ifdef LIMIT_BY_PUBLISHED                                   /* M */
        atomic { wide = 1; seen = p - CAP };
#else
        atomic { seen = mem[CONS]; wide = (p - seen >= CAP) };
#endif
#ifndef MARK_LATE                                           /* M */
        if :: wide -> sb[0]!OVER,seen+2*CAP :: else fi;
#endif
        if
        :: p - seen >= 2*CAP -> k++; goto next               /* full */
        :: else -> say(0)
        fi;
#ifdef MARK_LATE
        if :: wide -> sb[0]!OVER,seen+2*CAP :: else fi
#endif
     :: else -> say(0)
     fi;
     k++;
next: skip
  :: else -> break
  od;
  sb[0]!LIVE,0;
#ifndef REUSE
  atomic { empty(sb[0]) -> ended = 1 }
#endif
}
proctype follower() {             /* drop_newest, on the same lane */
  byte k, p;
  (mem[LIVE] == 0 && mem[WORD] == mem[CONS]);
  atomic { p = mem[WORD]; first = p; room = CAPB };
#ifndef KEEP_OVER                                           /* M */
  sb[2]!OVER,0;
  sb[2]!ECAP,CAPB;
#endif
  do
  :: k < NB ->
     if
     :: p - mem[CONS] < CAPB -> say(2)
     :: else -> skip
     fi;
     k++
  :: else -> break
  od;
  atomic { empty(sb[2]) -> ended = 1 }
}

proctype owner() {
  byte c, n, below, due, over, cap, i;
  bool looked, all;
  do
  :: atomic { mem[TAIL] > c && !looked -> all = ended };    /* take_run() */
#ifdef LOOK_FIRST                                           /* M, with REUSE */
     atomic { over = mem[OVER]; cap = mem[ECAP] };
#endif
take:
     atomic { mem[TAIL] > c ->                              /* one run: 1, 2 or all there are */
       if :: n = 1 :: mem[TAIL] > c + 1 -> n = 2 :: n = mem[TAIL] - c fi;
#ifndef TAKE_ON                                             /* M: what came after the look is in it too */
       if :: looked && c + n > below + cap -> n = below + cap - c :: else fi
#endif
     };
     if
     :: !looked ->
#ifndef LOOK_FIRST
        over = mem[OVER];
        cap = mem[ECAP];
#endif
        if
        :: over > c ->
#ifdef WORD_ALONE                                           /* M */
           below = mem[WORD];
#else
           atomic { below = mem[WORD]; if :: c + n > below -> below = c + n :: else fi };
#endif
#ifdef EVICT_ONE_MORE                                       /* M */
           below++;
#endif
           below = (below > cap -> below - cap : 0)
        :: else -> below = 0
        fi;
        looked = 1
     :: else
     fi;
     due = (below > c -> below - c : 0);
#ifdef TWICE                                                /* M: the debt is paid again by the next run */
     if :: below > c -> below = below + due :: else fi;
#endif
     due = (due > n -> n : due);
     if
     :: due > 0 ->
        atomic { i = c;
          do
          :: i < c + due -> assert(i < first); assert(com >= i + CAP + 1); i++
          :: else -> i = 0; break
          od };
#ifndef COUNT_LATE                                          /* M */
        sb[1]!EVD,ev+due;
#endif
#ifdef FREE_EARLY                                           /* M: the whole run's slots, before its callbacks */
        atomic { sb[1]!CONS,c+n; ev = ev + due; c = c + due; n = n - due; done = c };
#else
        atomic { sb[1]!CONS,c+due; ev = ev + due; c = c + due; n = n - due; done = c };
#endif
#ifdef COUNT_LATE
        sb[1]!EVD,ev;
#endif
        due = 0
     :: else
     fi;
     if :: n == 0 -> goto take :: else fi;
     assert(n <= HIS(c));                                   /* no run is longer than the capacity  */
     assert(!all || c + HIS(c) >= com);                     /* all was there: only the last are heard */
     atomic { del = del + n };                              /* the callbacks run here */
     atomic { c = c + n; done = c; sb[1]!CONS,c };
     atomic { n = 0; below = 0; over = 0; cap = 0; looked = 0; all = 0 }
  :: atomic { ended && mem[TAIL] == c -> break }
  od;
  assert(del + ev == com)                                   /* nothing is lost, nothing counted twice */
}
proctype reader() {               /* of the account, at any moment */
  byte c;
  c = mem[CONS];
  assert(c - mem[EVD] <= del)     /* what is called delivered was */
}
init { atomic {
  mem[LIVE] = 1; mem[ECAP] = CAP;
  run cpu(0); run cpu(1);
  run publisher(); run owner(); run reader();
#ifdef REUSE
  run cpu(2); run follower()
#endif
} }
