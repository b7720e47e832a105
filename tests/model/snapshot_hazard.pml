/* snapshot_hazard.pml -- when may an old snapshot of the subscribers, and a subscriber that was removed
 * from them, be freed, while workers read snapshots without a lock?  (engine/subscribe/snapshot.hpp)
 *
 *   worker                                          changer (under the channel's lock)
 *     seen = current                                  current = a new one; the old one is retired,
 *     is it what my word shows already? use it          and with it the subscriber that was removed
 *     again: reading = seen    (my own word)          when enough are retired:
 *     l_reading                                                HEAVY
 *     current still seen? use it                        look at every worker's word
 *     no: seen = current; again                         free the oldest ones, up to the first that a
 *   a batch ends: nothing; my word keeps showing          word shows
 *   parking or leaving: reading = none
 *
 * l_reading keeps the store to reading before the second look at current.  Default: it costs nothing and
 * HEAVY is membarrier.  -DFENCE: both are full fences of the thread itself.
 * Memory: TSO, a FIFO store buffer for each worker and for the changer.  Addresses are used again as soon
 * as they are free (lowest first), so that the comparisons meet ABA.
 * Here workers read at the same time.  That a lease lets one read at a time is a special case.
 *
 * What the model taught:
 *  - "My word shows it already" (no second announcement, the common case) is safe: what a word has shown
 *    since it was validated cannot have been freed, so the address cannot have been given out again.
 *    It is not safe on any other memory of the last snapshot (REMEMBERED).
 *  - Only the oldest run may be freed, not whatever nobody shows (FREE_ANY): a subscriber that was
 *    removed is named by every older snapshot too.
 *  - HEAVY begins with the changer's own fence; after the other threads' barriers it is too late
 *    (OWN_LAST).
 *  - The list of words may be taken before HEAVY, but no later worker may join it unseen: who joins
 *    under the changer's lock sees the new current.
 *
 * Size     W workers, BATCHES each, CHANGES (each adds a subscriber or removes the oldest)
 * Checked  nothing that is used is freed or given out again meanwhile; in the end, the workers gone,
 *          one look frees all that was retired
 * Mutants  marked M
 * Run: spin -a [-D..] snapshot_hazard.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef W
#define W 2
#endif
#ifndef BATCHES
#define BATCHES 2
#endif
#ifndef CHANGES
#define CHANGES 3
#endif
#define ROOM (CHANGES+2)           /* addresses 1 .. CHANGES+1; 0 is none                     */
#define CURRENT W                  /* mem[0 .. W-1] are the workers' words                    */
#define CHANGER W                  /* its store buffer                                        */
#define BIT(x) (1<<(x))

byte mem[W+1];
chan sb[W+1] = [2] of { byte, byte };
/* ---- what lies at an address: alive, how often given out, which subscribers it names ---- */
bool alive[ROOM]; byte times[ROOM], names[ROOM];
byte gone;                         /* subscribers freed, a set                                */
byte left;

proctype cpu(byte t) {             /* a buffered store becomes visible at any time            */
  byte a, v;
end: do
  :: atomic { sb[t]?a,v -> mem[a] = v; a = 0; v = 0 }
  od
}
#ifdef FENCE
#define l_reading (empty(sb[me]))
#define HEAVY (empty(sb[CHANGER]))
#else
#define l_reading skip
#ifdef OWN_LAST                    /* M */
#define OWN skip
#else
#define OWN (empty(sb[CHANGER]))
#endif
#define HEAVY OWN; j = 0; do :: atomic { empty(sb[j]) -> j++; if :: j > W -> j = 0; break :: else fi } od
#endif
#ifdef NO_L4                       /* M, with FENCE */
#undef l_reading
#define l_reading skip
#endif

/* ---- workers ---- */
#ifdef NEVER_REUSED                 /* M: shows that the second look meets an address given out again */
#define NOTED(x) atomic { x; given = times[seen] }
#define MET assert(given == times[seen])
#else
#define NOTED(x) x
#define MET skip
#endif
#define WHOLE(a) (a == 0 || (alive[a] && !(names[a] & gone)))
proctype worker(byte me) {
  byte k, seen, again, shown, given;
  do
  :: k < BATCHES ->
     NOTED(seen = mem[CURRENT]);
     if
     :: seen == shown -> skip
     :: else ->
        do
        :: sb[me]!me,seen;
#ifdef CLEAR_EARLY                 /* M */
           l_reading;
           again = mem[CURRENT];
           sb[me]!me,0;
#elif defined(NO_RECHECK)          /* M */
           again = seen;
#else
           l_reading;
           again = mem[CURRENT];
#endif
           if :: again == seen -> MET; break :: else -> NOTED(seen = again) fi
        od;
        atomic { shown = seen; again = 0 }
     fi;
     atomic { given = times[seen]; assert(WHOLE(seen)) };     /* the callbacks run here */
     atomic { assert(WHOLE(seen)); assert(given == times[seen]); given = 0; seen = 0; k++ };
     if                            /* to park, or to read another channel's, or neither */
     :: skip
     :: sb[me]!me,0;
#ifndef REMEMBERED                 /* M */
        shown = 0
#endif
     fi
  :: else -> break
  od;
  sb[me]!me,0;
  atomic { empty(sb[me]) -> left++ }
}

/* ---- the changer ---- */
#define SHOWN(a) (a == word[0] || a == word[W-1])
inline look() {                    /* one word after another */
  j = 0;
  do :: j < W -> atomic { word[j] = mem[j]; j++ } :: else -> j = 0; break od
}
inline forget() { atomic { j = 0; do :: j < W -> word[j] = 0; j++ :: else -> j = 0; break od } }
inline take_out() {                /* the oldest */
  atomic {
    alive[old[0]] = 0; gone = gone | went[0];
    j = 0; do :: j < n-1 -> old[j] = old[j+1]; went[j] = went[j+1]; j++ :: else -> break od;
    n--; old[n] = 0; went[n] = 0; j = 0
  }
}
inline free_unseen() {
#if defined(FREE_ANY)              /* M: whatever nobody shows */
  atomic { i = 0; do
    :: i < n && !SHOWN(old[i]) -> alive[old[i]] = 0; gone = gone | went[i]; old[i] = 0; went[i] = 0; i++
    :: i < n && SHOWN(old[i]) -> i++
    :: else -> break od;
    i = 0; j = 0; do
    :: i < n && old[i] -> old[j] = old[i]; went[j] = went[i]; if :: i != j -> old[i] = 0; went[i] = 0 :: else fi; i++; j++
    :: i < n && !old[i] -> i++
    :: else -> break od;
    n = j; i = 0; j = 0 }
#elif defined(NO_SCAN)             /* M */
  do :: n -> take_out() :: else -> break od
#else
  do :: n && !SHOWN(old[0]) -> take_out() :: else -> break od
#endif
}
inline reclaim() {
#ifndef NO_HEAVY                   /* M */
#ifndef HEAVY_FIRST
  HEAVY;
#endif
#endif
#ifndef SCAN_FIRST
  look();
#endif
  free_unseen();
  forget()
}
inline replace(set, without) {     /* the lowest free address; retire what was there */
  atomic { i = 1; do :: i < ROOM && alive[i] -> i++ :: else -> break od;
           assert(i < ROOM); alive[i] = 1; times[i]++; names[i] = set };
#ifdef HEAVY_FIRST                 /* M: the barrier before current is replaced */
  HEAVY;
#endif
#ifdef SCAN_FIRST                  /* M: the words are looked at before current is replaced */
  HEAVY;
  look();
#endif
  sb[CHANGER]!CURRENT,i;
  atomic { if :: now -> old[n] = now; went[n] = without; n++ :: else fi; now = i; i = 0 }
}
proctype changer() {
  byte c, i, j, n, now, low, high;
  byte old[CHANGES+1], went[CHANGES+1], word[W];
  do
  :: c < CHANGES ->
     if
     :: high++; replace(BIT(high) - BIT(low), 0)
     :: high > low -> low++; replace(BIT(high) - BIT(low), BIT(low-1))
     fi;
     if :: reclaim() :: skip fi;
     c++
  :: else -> break
  od;
  (left == W);
  reclaim();
  assert(n == 0)
}
init { atomic {
  byte t = 0;
  do :: t < W -> run worker(t); t++ :: else -> t = 0; break od;
  do :: t <= W -> run cpu(t); t++ :: else -> t = 0; break od;
  run changer()
} }
