/* thread_lanes.pml -- a channel's sources say once what lanes its threads get; threads take theirs meanwhile.
 * Question: is one answer true for all, is it seen whole and in time, and does a thread keep what it has?
 *
 *   say (a source)                              publish (a thread, twice)
 *     mine = new options; write them              has it a lane? that one
 *     said == 0 ? said = mine, one step           p = said; 0: as the channel is
 *       it was 0: they hold                       else as p's options are
 *       else free mine; the same as those         the lane is its own from then on
 *       that are said? they hold, else conflict
 *
 * Three sources, of which two ask for the same; two threads.  Options are two words, equal where they are whole.
 * Memory that was freed reads as 99.
 * Mutants, each must fail: LOOK_THEN_STORE (two steps instead of one), STORED_FIRST (said before written),
 * TOLD_EARLY (the source is told before it is stored), FREE_FOUND (the loser frees what it found),
 * SAME_IS_LAST (compares with its own, not with what is said), TAKE_ANEW (a thread looks again at each publish)
 */
#define FREED 99
byte said;                        /* the block that holds; 0: none */
byte first[4], second[4];         /* blocks 1 to 3, one of each source */
byte holds[4];                    /* what source i was told: 0 nothing yet, 1 it holds, 2 conflict */
byte agreed;                      /* some source was told that these hold */

proctype source(byte me, wants) {
  byte found;
#ifdef STORED_FIRST
  atomic { found = said; if :: found == 0 -> said = me :: else fi };
  first[me] = wants;
  second[me] = wants;
#else
  first[me] = wants;
  second[me] = wants;
#ifdef TOLD_EARLY
  if :: said == 0 -> agreed = wants :: else fi;
#endif
#ifdef LOOK_THEN_STORE
  found = said;
  if :: found == 0 -> said = me :: else fi;
#else
  atomic { found = said; if :: found == 0 -> said = me :: else fi };
#endif
#endif
  if
  :: found == 0 -> holds[me] = 1
  :: found != 0 ->
#ifdef FREE_FOUND
     first[found] = FREED; second[found] = FREED;
#else
     first[me] = FREED; second[me] = FREED;
#endif
     if
#ifdef SAME_IS_LAST
     :: first[me] == second[me] -> holds[me] = 1
     :: else -> holds[me] = 2
#else
     :: first[found] == wants && second[found] == wants -> holds[me] = 1
     :: else -> holds[me] = 2
#endif
     fi
  fi;
  atomic {
    if
    :: holds[me] == 1 ->
       assert(agreed == 0 || agreed == wants);   /* all that are told so asked for the same */
       assert(first[said] == wants && second[said] == wants);
       agreed = wants
    :: else -> assert(first[said] != wants)      /* a conflict is with others that do hold */
    fi
  }
}

proctype thread() {
  byte lane, before, p, known, a, times;
  do
  :: times == 2 -> break
  :: times < 2 ->
#ifndef TAKE_ANEW
     if
     :: lane != 0 -> skip
     :: lane == 0 ->
#endif
        known = agreed;
        p = said;
        if
        :: p == 0 -> lane = 10                   /* as the channel is */
        :: p != 0 ->
           a = first[p];
           assert(a == second[p] && a != 0 && a != FREED);
           lane = a
        fi;
        assert(known == 0 || lane == known);     /* said before it came: so it is */
#ifndef TAKE_ANEW
     fi;
#endif
     assert(times == 0 || lane == before);
     before = lane;
     times++
  od
}

init {
  atomic { run source(1, 1); run source(2, 2); run source(3, 1); run thread(); run thread() }
}
