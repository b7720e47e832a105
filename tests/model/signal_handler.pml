/* signal_handler.pml -- a signal handler publishes on a lane in the middle of its own thread's publish on it,
 * and another handler in the middle of that.  Question: is a publish lost, a slot written twice, a refusal
 * lost, or a sound ledger accused?
 *
 *   publish, ONE: one instruction says busy      elsewhere: a flag keeps handlers out
 *     w = word, a guess                            flag up, or busy? refused
 *     word is busy (one step)                      flag up
 *     the guess is not the word? it was busy:      w = word; word = w, busy
 *       refused; else w = word
 *     the slot; word = w, published                the slot; word = w, published; flag down
 *
 *   refuse                                       a thread that checks the ledger, on another processor
 *     settling one more; refused one more          first = refused; between = settling
 *     its reason one more; settling as before      counted = reasons; first <= counted + between
 *
 * A thread and its handlers never run at once: `top` says which of them does.  A handler begins anywhere, runs
 * to its end, and sees all that was done before it: so sequential consistency is no simplification.
 * WAIT: the handler's event waits for room, and the thread was about to wake the worker that would make it.
 * Mutants, each must fail: LOOK_FIRST (busy is said by a load and a store), GUESSED (the guess is not looked
 * at), NESTED (a guess that was busy is not), WORD_FIRST (the word is read before the flag is up), NO_FLAG,
 * COUNT_IN_TWO (a refusal is counted by a load and a store), SETTLED_FLAT (settling is 1 or 0), ONE_BETWEEN (the ledger is checked as if one at most were between two counts),
 * SAID_FIRST (of WAIT: it says that it has woken before it does)
 */
#ifndef NH
#define NH 2                      /* handlers, each in the middle of the one before */
#endif
#define NE 2                      /* events of the thread; a handler has one */
byte top;                         /* what of the thread runs: 0 itself, 1, 2 its handlers */
bool over;                        /* the thread is */

#ifndef WAIT
byte word, slot[NE+NH];           /* word: 2 * published + busy */
bool flag;
byte settling, refused, reasons;
byte offered, accepted, denied;   /* what callers were told */

#ifdef COUNT_IN_TWO               /* M */
#define COUNT(what) n = what; what = n + 1
#else
#define COUNT(what) what++
#endif

inline refuse() {
#ifdef SETTLED_FLAT               /* M */
  outer = 0;
#else
  outer = settling;
#endif
  settling = outer + 1;
  COUNT(refused);
  COUNT(reasons);
  settling = outer;
  denied++
}
inline begin() {                  /* w = 0: refused */
#ifdef ONE
#ifdef LOOK_FIRST                 /* M */
  w = word;
  if :: w % 2 == 0 -> w = w + 1; word = w :: else -> w = 0 fi
#else
  w = word + 1;
  atomic { if :: word % 2 == 0 -> word = word + 1 :: else fi };
  if
#ifndef GUESSED                   /* M */
  :: w != word && w % 2 != 0 -> w = word
#endif
#ifndef NESTED                    /* M */
  :: w != word && w % 2 == 0 -> w = 0
#endif
  :: else
  fi
#endif
#else
#ifdef WORD_FIRST                 /* M */
  w = word + 1;
#endif
  if
  :: flag || word % 2 != 0 -> w = 0
  :: else ->
#ifndef NO_FLAG                   /* M */
     flag = 1;
#endif
#ifndef WORD_FIRST
     w = word + 1;
#endif
     word = w
  fi
#endif
}
inline publish() {
  offered++;
  begin();
  if
  :: w == 0 -> refuse()
  :: else ->
     assert(slot[w / 2] == 0);
     slot[w / 2] = 1;
     word = w + 1;
     flag = 0;
     accepted++
  fi;
  w = 0; n = 0; outer = 0
}

proctype thread() provided (top == 0) {
  byte w, n, outer, said;
  do
  :: said < NE -> publish(); said++
  :: else -> break
  od;
  over = 1
}
proctype handler1() provided (top == 1) { byte w, n, outer; publish(); top = 0 }
proctype handler2() provided (top == 2) { byte w, n, outer; publish(); top = 1 }
proctype checker() {
  byte first, between, counted;
  first = refused;
  between = settling;
#ifdef ONE_BETWEEN                /* M */
  if :: between > 1 -> between = 1 :: else fi;
#endif
  counted = reasons;
  assert(first <= counted + between)
}
active proctype monitor() {
  (over);
  assert(word == 2 * accepted);
  assert(accepted + denied == offered);
  assert(refused == denied && reasons == denied && settling == 0)
}
#else
byte number = 1, remembered;      /* of the park; of the one that was ended last */
bool parked = 1;

inline wake() {
  if
  :: !parked || number == remembered -> skip
  :: else ->
#ifdef SAID_FIRST                 /* M */
     remembered = number;
#endif
     parked = 0;
     remembered = number
  fi
}
proctype thread() provided (top == 0) {
  wake();
  over = 1
}
proctype handler1() provided (top == 1) {
  wake();
  !parked;                        /* the worker comes and makes room */
  top = 0
}
active proctype monitor() { (over) }
#endif

/* The signals: each comes at any step of what it interrupts, or never. */
active proctype signals() {
end_first:
  atomic { top == 0 && !over -> top = 1; run handler1() };
#if NH == 2 && !defined(WAIT)
end_second:
  atomic { top == 1 -> top = 2; run handler2() }
#endif
}
init {
  atomic {
    run thread();
#ifndef WAIT
    run checker()
#endif
  }
}
