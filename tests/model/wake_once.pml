/* wake_once.pml -- a publisher wakes a parked worker once for each of its parks: it remembers the number
 * of the park that it has ended last, until the worker parks anew.  Question: is an event stranded
 * because a number is met again, or seen before its park can be ended?
 *
 *   publish                                     worker
 *     signal (RMW)                                nothing signalled: seen = key
 *     idle: nobody parked? done                   number = the next one
 *     n = number; remembered? done                parked (RMW); signalled after all? up again
 *     remembered = n; key moves; wake             futex_wait(key, seen); not parked (RMW)
 *
 * One publisher comes seldom, one often.  Numbers are from 1 to LAP, then from 1 again: with as many as there
 * are parks none is met again, which is what 64 bits are for.
 * Mutants, each must fail: LAP=2 (numbers come round), NUMBER_FIRST (the number is there before the key is read)
 */
#ifndef LAP
#define LAP 20
#endif
bool signal, parked, sleeps;
byte number, ended;
bool key;                         /* it has moved since it was read */

proctype publisher(byte events) {
  byte remembered, n;
  do
  :: events > 0 ->
     signal = 1;
     if
     :: !parked -> skip
     :: parked ->
        n = number;
        if
        :: n == remembered -> skip
        :: n != remembered ->
           remembered = n;
           key = 1;
           sleeps = 0
        fi
     fi;
     events--;
     n = 0
  :: else -> break
  od;
  ended++
}
active proctype worker() {
end: do
  :: atomic { signal -> signal = 0 }
  :: !signal ->
#ifdef NUMBER_FIRST
     number = number % LAP + 1;
     key = 0;
#else
     key = 0;
     number = number % LAP + 1;
#endif
     parked = 1;
     if
     :: signal -> skip
     :: !signal -> atomic { if :: !key -> sleeps = 1 :: else fi };
end_asleep: (!sleeps)
     fi;
     parked = 0
  od
}
/* Blocked for ever: a signal that nobody takes. */
active proctype monitor() {
  (ended == 2 && !signal)
}
init { atomic { run publisher(2); run publisher(3) } }
