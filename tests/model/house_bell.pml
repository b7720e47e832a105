/* house_bell.pml -- the housekeeper's sleep: is a ring missed, does it doze beside a worker that is
 * awake?  (engine/system/bell.hpp)
 *
 *   ringer                                worker                    housekeeper
 *     word |= what ; before                 leaves its park           word |= ASLEEP|DOZING ; before
 *     before & ASLEEP, and not yet          word & DOZING?            before & RUNG? take
 *     rung: futex_wake                        ring(BUSY)              a worker awake?
 *                                                                       word &= ~DOZING ; RUNG? take
 *                                                                     futex_wait(word, as it left it)
 *                                                                   take: word = 0
 *
 * A doze has no end of its own here (in the code: a second), a nap may end at any time.
 * All of them are read-modify-writes or seq_cst, so memory is not modelled; Relacy does that
 * (house_bell_relacy.cpp).
 *
 * Checked  when nothing moves any more, all that was rung is taken, and no worker is at work beside
 *          a housekeeper that dozes.
 * Mutants  marked M
 * Run: spin -a [-D..] house_bell.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#define NEWS   1
#define BUSY   2
#define ASLEEP 4
#define DOZING 8
#define RUNG   3

byte word;
bool asleep;                        /* in futex_wait                                           */
bool awake;                         /* the worker is not parked                                */
bool stirred;                       /* it has looked at the word since it left its park        */
byte news, taken;                   /* rung and taken, as the housekeeper must see them        */

inline ring(what) {
  atomic { before = word; word = word | what };
#ifndef NO_WAKE                     /* M */
  if :: (before & ASLEEP) && (before & what) != what -> asleep = 0 :: else fi;
#endif
  before = 0
}
proctype ringer() {
  byte before;
  news++;
  ring(NEWS)
}
proctype worker() {
  byte before, round;
  do
  :: round < 2 ->
     round++;
#ifdef STIR_FIRST                   /* M: looks before it has said that it is awake            */
     if :: word & DOZING -> ring(BUSY) :: else fi;
     awake = 1;
#else
     awake = 1;
#ifndef NO_STIR                     /* M */
     if :: word & DOZING -> ring(BUSY) :: else fi;
#endif
#endif
     stirred = 1;
     /* the callback may run for ever */
     if :: skip :: goto stuck fi;
     atomic { stirred = 0; awake = 0 }
  :: else -> break
  od;
stuck:
  skip
}
active proctype housekeeper() {
  byte before, seen;
  do
  ::
     atomic { before = word & RUNG; word = word | ASLEEP | DOZING };
     seen = ASLEEP | DOZING;
     if
#ifndef DOZE_BLINDLY                /* M */
     :: !before && awake ->
        atomic { before = word & RUNG; word = word & (255 - DOZING) };
        seen = ASLEEP
#endif
     :: else -> skip
     fi;
     if
     :: !before ->
#ifdef COMPARE_LATE                 /* M: sleeps on whatever the word is by then               */
        seen = word;
#endif
        atomic { if :: word == seen -> asleep = 1 :: else fi };
endsleep:
        if
        :: !asleep -> skip
        :: seen == ASLEEP && asleep -> asleep = 0     /* a nap is over by itself               */
        fi
     :: else -> skip
     fi;
#ifdef NEWS_LATE                    /* M: what is rung between look and clear is forgotten     */
     taken = news; word = 0;
#else
     word = 0;
     taken = news;
#endif
     before = 0; seen = 0
  od
}
proctype rest() {                   /* nothing moves any more: the housekeeper dozes            */
endrest:
  timeout ->
  assert(taken == news);
  assert(!(awake && stirred))
}
init { atomic { run ringer(); run ringer(); run worker(); run rest() } }
