/* completions.pml -- does every ticket end once, in order, and by what the GPU did?
 * (adapters/sources/cuda/completions_lane.hpp, completions_poller.cpp)
 *
 *   a thread that arms, on its own lane            the poller
 *     head - tail < CAP? else refused                each lane: h = head; w = word
 *     busy; sealed? refused, not busy                  while tail < h and slot[tail % CAP] <= w:
 *     value += 1; slot[head % CAP] = value               it completed; tail += 1
 *     the driver: the stream writes value to word      nothing armed: asleep = 1; look at the heads
 *       (or an error: not armed, the lane is burnt)      once more; wait until asleep is 0
 *     sealed? refused, burnt: else head += 1 (one     the GPU is broken: seal all lanes, look once
 *     CAS); not busy; asleep? asleep = 0, wake      more, fail the rest
 *   another stream takes the lane: only if
 *     tail = head, and not burnt                     given up: the same, but abandoned; over:
 *                                                      the words are unpinned if nothing is open and
 *                                                      no lane is busy or burnt
 *
 *   the GPU, each stream: writes in order             who ends: seals all lanes, wakes; later gives up
 *
 * All words are sequentially consistent, busy and sealed by the asymmetric barrier between storing one
 * and reading the other, so memory is not modelled.  A lane has two streams (handles of
 * a stream that is destroyed come again), whose writes overtake each other.  The GPU may break at any
 * moment; then nothing is written.  A failed call of the driver's may have put its write on the stream
 * all the same (-DHALF).
 * Checked  armed = completed + failed + abandoned, each once and in order; what completed was reached by
 *          the GPU; what failed was not; no wake-up is lost.
 * Mutants  marked M
 * Run: spin -a [-D..] completions.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef LANES
#define LANES 1
#endif
#ifndef TICKETS
#define TICKETS 3                  /* tries of each thread */
#endif
#ifndef CAP
#define CAP 2
#endif
#define ROOM 4                     /* of a stream's queue: TICKETS at most */

byte head[LANES], tail[LANES], word[LANES], slot[LANES*CAP];
bool sealed[LANES], asleep, broken, ending, given_up, over;
chan streams[2*LANES] = [ROOM] of { byte, byte };   /* value; the ticket's number from 1 on, 0: none */
byte ran[LANES];                   /* bits: tickets whose write was done */
byte armed[LANES], ended[LANES];
bool busy[LANES], burnt[LANES];    /* the driver is called; a call failed, its write may come */
bool open, unpinned;
byte begun;                        /* threads that have not finished arming */
#ifdef REUSE_BURNT                 /* M */
#define MAY_CHANGE true
#else
#define MAY_CHANGE !burnt[l]
#endif
#define PLACE(l,i) ((l)*CAP + (i)%CAP)

inline wake() { atomic { asleep = 0 } }

proctype arms(byte l) {
  byte n, value, s, h;
  do
  :: n < TICKETS ->
     n++;
     h = head[l];
     if                            /* the other stream, whose handle is new */
#ifdef REUSE_UNDRAINED             /* M */
     :: s = 1 - s
#else
     :: tail[l] == h && MAY_CHANGE -> s = 1 - s
#endif
     :: skip
     fi;
     if
     :: h - tail[l] >= CAP -> goto next          /* refused: full */
     :: else -> skip
     fi;
#ifdef LOOK_FIRST                  /* M: or no barrier, here or where it is sealed            */
     if :: sealed[l] -> goto next :: else -> skip fi;
     busy[l] = 1;
#else
     busy[l] = 1;
#ifndef NO_SEAL                    /* M */
     if :: sealed[l] -> busy[l] = 0; goto next :: else -> skip fi;
#endif
#endif
     value++;
     slot[PLACE(l,h)] = value;
     if
     :: atomic { nfull(streams[2*l+s]) -> assert(!unpinned); streams[2*l+s]!value,h+1 }
#ifdef HALF
     :: atomic { nfull(streams[2*l+s]) -> assert(!unpinned); streams[2*l+s]!value,0 };
        burnt[l] = 1; busy[l] = 0;               /* an error, but the write is there */
#ifdef VALUE_AGAIN                 /* M: the next try has the same value */
        value--;
#endif
        goto next
#else
     :: burnt[l] = 1; busy[l] = 0; goto next     /* an error: nothing was put there */
#endif
     fi;
#ifdef WAKE_FIRST                  /* M */
     if :: asleep -> wake() :: else -> skip fi;
#endif
     atomic {
       if
#ifndef NO_SEAL
       :: sealed[l] -> burnt[l] = 1; busy[l] = 0; goto next
       :: !sealed[l] ->
#else
       :: true ->
#endif
          assert(head[l] == h); head[l] = h + 1; armed[l]++
       fi
     };
     busy[l] = 0;
#ifndef WAKE_FIRST
     if :: asleep -> wake() :: else -> skip fi;
#endif
next: skip
  :: else -> break
  od;
  begun--
}

proctype gpu(byte q) {             /* one stream's work */
  byte v, t;
end:
  do
  :: atomic { !broken && nempty(streams[q]) ->
       assert(!unpinned); streams[q]?v,t; word[q/2] = v;
       if :: t > 0 -> ran[q/2] = ran[q/2] | (1 << (t-1)) :: else -> skip fi; v = 0; t = 0 }
  od
}
proctype breaks() { if :: broken = 1 :: skip fi }

inline completed_of(l) {           /* by what is in the word */
  h = head[l]; w = word[l];
  do
  :: tail[l] < h && slot[PLACE(l,tail[l])] <= w ->
#ifdef TAIL_EARLY                  /* M: the room is given back before the ticket was read */
     tail[l] = tail[l] + 1;
     atomic { v = slot[PLACE(l,tail[l]-1)]; assert(v <= w); assert(ran[l] & (1 << (tail[l]-1))); ended[l]++ }
#else
     atomic { assert(ran[l] & (1 << tail[l])); assert(ended[l] == tail[l]); ended[l]++ };
     tail[l] = tail[l] + 1;
#endif
     moved = 1
  :: else -> break
  od
}
inline end_rest(why) {             /* why 1: failed, 0: abandoned */
#ifdef HEAD_BEFORE_SEAL            /* M */
  l = 0; do :: l < LANES -> last[l] = head[l]; l++ :: else -> break od;
#endif
  l = 0;
  do
  :: l < LANES -> sealed[l] = 1; l++
  :: else -> break
  od;
  l = 0;
  do
  :: l < LANES ->
#ifndef NO_LAST_LOOK               /* M */
     completed_of(l);
#endif
#ifndef HEAD_BEFORE_SEAL
     last[l] = head[l];
#endif
     do
     :: tail[l] < last[l] ->
        if :: why -> assert(!(ran[l] & (1 << tail[l]))) :: else -> skip fi;
        atomic { assert(ended[l] == tail[l]); ended[l]++; open = 1 };
        tail[l] = tail[l] + 1
     :: else -> break
     od;
     l++
  :: else -> break
  od
}
proctype poller() {
  byte l, h, w, v, last[LANES];
  bool moved, pending;
  do
  :: true ->
     moved = 0; pending = 0; l = 0;
     do
     :: l < LANES ->
        completed_of(l);
        if :: tail[l] < head[l] -> pending = 1 :: else -> skip fi;
        l++
     :: else -> break
     od;
     if
     :: given_up -> end_rest(0); break
     :: !given_up && ending && !pending -> end_rest(0); break
     :: !given_up && broken && pending -> end_rest(1)
     :: !given_up && !ending && !pending && !moved ->
        asleep = 1;
#ifndef NO_SECOND_LOOK             /* M */
        l = 0;
        do
        :: l < LANES && tail[l] == head[l] -> l++
        :: l < LANES && tail[l] != head[l] -> asleep = 0; break
        :: l == LANES -> break
        od;
#endif
        if :: ending -> asleep = 0 :: else -> skip fi;
end_asleep:
        (!asleep)
     :: else ->                    /* it naps: nothing to do until something happens */
end_naps:
        (moved || given_up || ending || broken || (word[0] >= slot[PLACE(0,tail[0])])
#if LANES > 1
         || (word[1] >= slot[PLACE(1,tail[1])])
#endif
        )
     fi
  od;
  l = 0;
  do
  :: l < LANES ->
#ifndef LET_GO_BUSY                /* M */
     if :: busy[l] -> open = 1 :: else -> skip fi;
#endif
#ifndef LET_GO_BURNT               /* M */
     if :: burnt[l] -> open = 1 :: else -> skip fi;
#endif
     l++
  :: else -> break
  od;
#ifdef LET_GO_OPEN                 /* M */
  open = 0;
#endif
  if :: open -> skip :: else -> unpinned = 1 fi;
  over = 1
}
proctype ends() {
  byte l;
  ending = 1;
  do
#ifndef NO_SEAL
  :: l < LANES -> sealed[l] = 1; l++
#else
  :: l < LANES -> l++
#endif
  :: else -> break
  od;
  wake();
  given_up = 1;                    /* the deadline may come at any moment */
  (over && begun == 0);
  l = 0;
  do
  :: l < LANES -> assert(armed[l] == ended[l]); l++
  :: else -> break
  od
}
proctype hears() {                 /* -DNO_END: what was armed is heard without an end */
  byte l;
  (begun == 0);
  do
  :: l < LANES -> (armed[l] == ended[l]); l++
  :: else -> break
  od
}
init { atomic {
  byte t = 0;
  begun = LANES;
  do :: t < LANES -> run arms(t); run gpu(2*t); run gpu(2*t+1); t++ :: else -> break od;
  run breaks(); run poller();
#ifdef NO_END
  run hears()
#else
  run ends()
#endif
} }
