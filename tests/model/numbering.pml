/* numbering.pml -- is every number given once, in rising order, and is it the right one when all is quiet?
 * (engine/system/numbering.hpp)
 *
 *   add     a thread with a word of its own: word++, and nobody else writes it (load, then store);
 *           one without: shared++ (read-modify-write)
 *   number  counted = the words, one after another; taken: up to counted (CAS, again if it has changed):
 *           the winner puts the difference into shared; number = shared += difference + 1
 *
 * Two threads with words of their own, which add, and of which the first takes a number then; two more that
 * take numbers; one that adds without a word. A thread may claim the word that another claims at once.
 * Checked  numbers are unique; those of one thread grow; when all is quiet, the next one is above all that was
 *          counted, and nothing was counted twice.
 * Not promised: that a number is above what its own thread has counted, while another puts that into shared.
 * Not here: memory orders (all are relaxed: each word is coherent by itself, and nothing is concluded
 * from one about another); words whose thread has ended.
 * Mutants  marked M
 * Run: spin -a [-D..] numbering.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#define COUNTED 7                  /* three were added, and four numbers given             */
byte owner[2], word[2];
byte shared, taken, over;
bool given[2*COUNTED];

inline add(me) {
  i = 0;
  do
  :: i < 2 ->
#ifdef CLAIM_BY_LOAD               /* M: two threads write one word                         */
     mine = (owner[i] == 0 || owner[i] == me);
     if :: mine -> owner[i] = me :: else fi;
#else
     atomic {
       if :: owner[i] == 0 -> owner[i] = me :: else fi;
       mine = (owner[i] == me)
     };
#endif
     if
     :: mine -> w = word[i]; word[i] = w+1; break
     :: else -> i++
     fi
  :: else ->
#ifdef SHARED_BY_STORE             /* M */
     w = shared; shared = w+1;
#else
     atomic { shared++ };
#endif
     break
  od
}

inline put() {                     /* more: what shared lacks                               */
  more = 0;
  w = word[0]; counted = w;
  w = word[1]; counted = counted + w;
  t = taken;
  do
  :: t < counted ->
#ifdef TAKEN_BY_STORE              /* M: two put the same into shared                       */
     taken = counted; more = counted - t; break
#else
     atomic {
       if
       :: taken == t -> taken = counted; more = counted - t
       :: else -> t = taken
       fi
     };
     if :: more > 0 -> break :: else fi
#endif
  :: else -> break
  od
}

inline number(above) {
#ifdef OWN_IS_LEFT_OUT             /* M */
  more = 0;
#else
  put();
#endif
#ifdef NUMBER_BY_STORE             /* M */
  n = shared; n = n+more+1; shared = n;
#else
  atomic { shared = shared+more+1; n = shared };
#endif
  assert(n > above);
  atomic { assert(!given[n]); given[n] = true }
}

active proctype first() {
  byte i, w, t, counted, more, n;
  bool mine;
  add(1); number(0); over++
}
active proctype second() {
  byte i, w, t, counted, more, n;
  bool mine;
  add(2); over++
}
active proctype third() {
  byte i, w, t, counted, more, n;
  bool mine;
  add(3); number(0); over++
}
active proctype asks() {
  byte w, t, counted, more, n, last;
  number(0); last = n; number(last); over++
}

/* When all is quiet the next number is known. */
active proctype check() {
  byte w, t, counted, more, n;
  (over == 4);
  number(COUNTED);
  assert(n == COUNTED+1)
}
