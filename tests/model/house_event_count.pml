/* house_event_count.pml -- the housekeeper's wait: is a notification missed, does it wait for long
 * beside a worker that is awake?  (engine/system/event_count.hpp)
 *
 *   notifier                              worker                    housekeeper
 *     word |= what ; before                 leaves its park           word |= ASLEEP|LONG ; before
 *     before & ASLEEP, and not yet          word & LONG?              before & NOTIFIED? take
 *     notified: futex_wake                    notify(BUSY)            a worker awake?
 *                                                                       word &= ~LONG ; NOTIFIED? take
 *                                                                     futex_wait(word, as it left it)
 *                                                                   take: word = 0
 *
 * A long wait has no end of its own here (in the code: a second), a short one may end at any time.
 * All of them are read-modify-writes or seq_cst, so memory is not modelled; Relacy does that
 * (house_event_count_relacy.cpp).
 *
 * Checked  when nothing moves any more, all that was notified is taken, and no worker is at work
 *          beside a housekeeper in a long wait.
 * Mutants  marked M
 * Run: spin -a [-D..] house_event_count.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#define NEWS   1
#define BUSY   2
#define ASLEEP 4
#define LONG 8
#define NOTIFIED   3

byte word;
bool asleep;                        /* in futex_wait                                           */
bool awake;                         /* the worker is not parked                                */
bool looked;                       /* it has looked at the word since it left its park        */
byte news, taken;                   /* notified and taken, as the housekeeper must see them    */

inline notify(what) {
  atomic { before = word; word = word | what };
#ifndef NO_WAKE                     /* M */
  if :: (before & ASLEEP) && (before & what) != what -> asleep = 0 :: else fi;
#endif
  before = 0
}
proctype notifier() {
  byte before;
  news++;
  notify(NEWS)
}
proctype worker() {
  byte before, round;
  do
  :: round < 2 ->
     round++;
#ifdef LOOK_FIRST                   /* M: looks before it has said that it is awake            */
     if :: word & LONG -> notify(BUSY) :: else fi;
     awake = 1;
#else
     awake = 1;
#ifndef NO_LOOK                     /* M */
     if :: word & LONG -> notify(BUSY) :: else fi;
#endif
#endif
     looked = 1;
     /* the callback may run for ever */
     if :: skip :: goto stuck fi;
     atomic { looked = 0; awake = 0 }
  :: else -> break
  od;
stuck:
  skip
}
active proctype housekeeper() {
  byte before, seen;
  do
  ::
     atomic { before = word & NOTIFIED; word = word | ASLEEP | LONG };
     seen = ASLEEP | LONG;
     if
#ifndef LONG_BLINDLY                /* M */
     :: !before && awake ->
        atomic { before = word & NOTIFIED; word = word & (255 - LONG) };
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
        :: seen == ASLEEP && asleep -> asleep = 0     /* a short wait is over by itself        */
        fi
     :: else -> skip
     fi;
#ifdef NEWS_LATE                    /* M: what is notified between look and clear is forgotten */
     taken = news; word = 0;
#else
     word = 0;
     taken = news;
#endif
     before = 0; seen = 0
  od
}
proctype rest() {                   /* nothing moves any more: the housekeeper's wait is long   */
endrest:
  timeout ->
  assert(taken == news);
  assert(!(awake && looked))
}
init { atomic { run notifier(); run notifier(); run worker(); run rest() } }
