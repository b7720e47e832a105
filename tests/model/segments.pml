/* segments.pml -- a lane whose slots lie in segments that are linked as they are filled, and come back once
 * the owner has consumed an event of a later one.  Question: is an event lost, heard twice or out of order,
 * is a slot written while it is read, does the owner follow a link that is not its segment's, and is the
 * bound still exact?
 *
 *   publisher                                      owner (one at a time)
 *     index == end of the segment:                   consumed == end of the segment:
 *       oldest.end < consumed: to = oldest              next == none: nothing is there
 *       else to = a new one                            goes on to next
 *       to.next = none; to.end = index + its slots   slot's sequence > last: takes it, callback,
 *       writing.next = to                  (s.linked)  consumed++                     (e.consumed)
 *     slot: payload, then sequence     (e.published)
 *     published++
 *
 * Out of memory: no segment, the event is refused, the next one asks again.
 * The next publisher of the lane (REUSE) goes on with the segments that it finds.
 * One that streams (STREAM) may make a segment though the oldest has come back.
 * Memory: TSO, a FIFO store buffer for publisher and owner each.
 *
 * Size    NE events of the first publisher, NB of the next, CAP the bound, SZ slots a segment, NS segments
 * Mutants, each must fail: marked M below
 */
#ifndef NE
#define NE 7
#endif
#ifndef NB
#define NB 3
#endif
#ifndef CAP
#define CAP 3
#endif
#ifndef NS
#define NS 4
#endif
#ifndef SB
#define SB 6
#endif
#define SZ 2
#define NONE 0                    /* segments have numbers from 1 */
/* addresses */
#define SEQ(s,i)  ((s)*SZ + (i)%SZ)
#define PAY(s,i)  (20 + (s)*SZ + (i)%SZ)
#define NEXT(s)   (40 + (s))
#define END(s)    (50 + (s))
#define WORD 60
#define CONS 61
#define LIVE 62
byte mem[63];
chan sb[2] = [SB] of { byte, byte };
/* the publisher's side, which e.lane_free hands on */
byte index, writing, oldest, made;
/* ghosts */
byte com, heard;
bool ended;

proctype cpu(byte t) {
  byte a, v;
end: do :: atomic { sb[t]?a,v -> mem[a] = v; a = 0; v = 0 } od
}

inline link(to) {
#ifdef LINK_FIRST                                           /* M */
  sb[0]!NEXT(writing),to;
#endif
#ifndef KEEP_NEXT                                           /* M */
  sb[0]!NEXT(to),NONE;
#endif
  sb[0]!END(to),index+SZ;
#ifndef LINK_FIRST
  sb[0]!NEXT(writing),to;
#endif
  writing = to;
  stop = index + SZ
}
/* `links` are what the publisher itself knows of NEXT: its own stores */
byte links[NS+1];
byte ends[NS+1];

inline extend() {
  c = mem[CONS];
  to = NONE;
  if
#ifdef BACK_AT_END                                          /* M */
  :: oldest != writing && ends[oldest] <= c ->
#else
  :: oldest != writing && ends[oldest] < c ->
#endif
     atomic { to = oldest; oldest = links[oldest] }
#ifdef STREAM                     /* it may make one though the oldest has come back */
  :: oldest != writing && ends[oldest] < c && made < NS -> atomic { made++; to = made }
#endif
  :: else ->
     if
     :: made < NS -> atomic { made++; to = made }
#ifdef GARBAGE                                              /* M */
        ; atomic { mem[SEQ(to,0)] = 99; mem[SEQ(to,1)] = 99 }
#endif
     :: assert(c != index)                                   /* out of memory: something waits */
     fi
  fi;
  if
  :: to != NONE -> atomic { links[writing] = to; ends[to] = index + SZ; links[to] = NONE };
     link(to)
  :: else
  fi
}
inline publish(n) {
  k = 0;
  do
  :: k < n ->
     if
     :: index - mem[CONS] < CAP ->
#ifdef PAST_THE_END                                         /* M: goes on where the segment is over */
        if :: index == stop -> stop = stop + SZ :: else fi;
#else
        if :: index == stop -> extend() :: else fi;
#endif
#ifdef COUNT_REFUSED                                        /* M: published, though there was no slot */
        if :: index == stop -> atomic { index++; stop++; com++ }; sb[0]!WORD,index :: else ->
#else
        if :: index == stop -> skip :: else ->              /* refused */
#endif
           sb[0]!PAY(writing,index),index+1;
           atomic { sb[0]!SEQ(writing,index),index+1; com++; assert(com - heard <= CAP) };
           index++;
           sb[0]!WORD,index
        fi
     :: else -> skip                                         /* full */
     fi;
     k++
  :: else -> break
  od
}

proctype publisher() {
  byte k, c, to, stop;
  stop = SZ;
  publish(NE);
#ifdef REUSE
  sb[0]!LIVE,0;
  (mem[LIVE] == 0 && mem[WORD] == mem[CONS]);               /* the next one */
#ifdef OWN_SEGMENTS                                         /* M */
  atomic { made++; writing = made; oldest = made; ends[writing] = index + SZ };
#endif
  stop = ends[writing];
  publish(NB);
#endif
  atomic { empty(sb[0]) -> ended = 1 }
}

proctype owner() {
  byte c, r, at, seen, stop;
  r = 1; stop = SZ;
  do
  :: atomic { c == stop && mem[NEXT(r)] != NONE -> r = mem[NEXT(r)] };
     stop = mem[END(r)]                                     /* what it knows of a segment is read once */
  :: atomic { c != stop && mem[SEQ(r,c)] > c -> seen = mem[SEQ(r,c)] };
     assert(seen == c + 1);                                 /* no other event is in its place */
#ifdef EARLY                                                /* M: consumed before the callback is over */
     sb[1]!CONS,c+1;
#endif
     at = mem[PAY(r,c)]; assert(at == c + 1);               /* the callback: looks at it twice */
     at = mem[PAY(r,c)]; assert(at == c + 1);
     atomic { heard = c + 1; c = c + 1 };
#ifndef EARLY
     sb[1]!CONS,c;
#endif
     atomic { at = 0; seen = 0 }
  :: atomic { ended && mem[WORD] == c -> break }
  od;
  assert(heard == com)
}
init { atomic {
  /* two: one that ended before the first event comes back once that is consumed */
  made = 2; writing = 1; oldest = 2; links[2] = 1; ends[1] = SZ; mem[END(1)] = SZ; mem[LIVE] = 1;
  run cpu(0); run cpu(1);
  run publisher(); run owner()
} }
