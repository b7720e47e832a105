/* ready_channels.pml -- channels that wait for a worker are taken in one circular order that all workers share.
 * Question: how many turns may others have while a channel waits, however the workers are delayed?
 *
 *   take                                             put
 *     at = turn                                        waiting |= channel        (RMW)
 *     the first channel at or after `at`, round,
 *       whose bit is set; words are read one by one
 *     bit &= ~ (RMW); it was not set: look on
 *     turn = max(turn, its place + 1)  (CAS)
 *
 * A place counts laps, so that a worker that was delayed cannot set the turn back. A take may be stale:
 * others went past between its look at the turn and its RMW. Each of the others' steps forward makes at
 * most one take of each worker stale, so a channel waits for at most W turns of each other one and one
 * stale turn of each other worker that was under way.
 *
 * Size    NC channels in words of WB, NW workers, TAKES in all (bounds the search, and the numbers)
 * Mutants PLAIN_STORE (the turn is stored, not raised)  FROM_FIRST (the search begins at 0)  BOUND one less
 * Run: spin -a [-D..] ready_channels.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 */
#ifndef NC
#define NC 4
#endif
#ifndef WB
#define WB 2
#endif
#ifndef NW
#define NW 2
#endif
#ifndef TAKES
#define TAKES 14
#endif
#ifndef BOUND
#define BOUND (NW*(NC-1)+NW-1)
#endif

bool waits[NC];
byte waited[NC];                  /* turns of others since it was put: ghost                 */
byte turn, takes;

proctype worker() {
  byte at, k, c, i;
  bool seen[WB];
  do
  :: takes < TAKES ->
#ifdef FROM_FIRST                 /* M */
     at = (turn / NC) * NC;
#else
     at = turn;
#endif
     k = 0;
     do
     :: k > NC -> break           /* a lap, and the first word's lower part once more         */
     :: else ->
        /* one load of the word that holds the place at + k */
        atomic { c = (at + k) % NC; i = 0;
          do :: i < WB -> seen[i] = waits[(c / WB) * WB + i]; i++ :: else -> i = 0; break od };
        do                        /* what it said, from that place to the word's end          */
        :: seen[c % WB] ->
           atomic {               /* the RMW; if it is ours, the ghost sees the turn          */
             if
             :: waits[c] ->
                waits[c] = 0; waited[c] = 0; takes++;
                do
                :: i < NC -> if :: waits[i] -> waited[i]++; assert(waited[i] <= BOUND) :: else fi; i++
                :: else -> i = 0; break
                od;
                goto ours
             :: else
             fi };
           if :: (c + 1) % WB == 0 || k >= NC -> k++; break :: else -> k++; c++ fi
        :: else ->
           if :: (c + 1) % WB == 0 || k >= NC -> k++; break :: else -> k++; c++ fi
        od
     od;
     goto next;
ours:
#ifdef PLAIN_STORE                /* M */
     turn = at + k + 1;
#else
     atomic { if :: turn < at + k + 1 -> turn = at + k + 1 :: else fi };
#endif
     skip;                        /* callbacks                                                */
     atomic { waits[c] = 1; waited[c] = 0 };
next:
     atomic { at = 0; k = 0; c = 0; do :: i < WB -> seen[i] = 0; i++ :: else -> i = 0; break od }
  :: else -> break
  od
}
init { atomic {
  byte n = 0;
  do :: n < NC -> waits[n] = 1; n++ :: else -> n = 0; break od;
  do :: n < NW -> run worker(); n++ :: else -> n = 0; break od
} }
