/* ends_while_issued.pml -- does an operation that is issued while its communicator ends, end too, and once?
 * (is_over_by() in adapters/sources/collective/communicator_gate.hpp, end_if_over() in communicator_issue.cpp)
 *
 *   issue  opened (a store, which the core may keep back); a fence of the compiler alone; is it over?
 *          then it ends what it opened; else it goes on
 *   end    over; a barrier that every thread passes; is one open? then it ends that
 *
 * Two threads that issue, and one that ends. A store that is kept back gets through at any later time, at the
 * thread's own read-modify-write, or at the barrier; the thread itself sees it at once.
 * Checked  when all is over, each operation has ended, by one of the two.
 * Mutants  marked M
 * Run: spin -a [-D..] ends_while_issued.pml && gcc -DSAFETY -o pan pan.c && ./pan
 */
#define N 2
bool kept[N];                      /* opened, and only its own core knows                   */
bool open[N];
byte told[N], done;
bool over;

inline gets_through(i) { if :: kept[i] -> kept[i] = false; open[i] = true :: else fi }
inline ends(i) {                   /* a read-modify-write: one of several wins              */
  atomic { if :: open[i] -> open[i] = false; told[i]++ :: else fi }
}

active [N] proctype issuer() {
  bool seen;
#ifdef LOOK_FIRST                  /* M */
  seen = over; kept[_pid] = true;
#else
  kept[_pid] = true; seen = over;
#endif
  if
  :: seen -> atomic { gets_through(_pid) }; ends(_pid)
  :: else
  fi;
  done++
}
active proctype core() {           /* stores get through                                    */
  do
  :: atomic { kept[0] -> gets_through(0) }
  :: atomic { kept[1] -> gets_through(1) }
  :: done == N+1 && !kept[0] && !kept[1] -> break
  od;
  assert(told[0] == 1 && told[1] == 1)
}
active proctype ender() {
  byte i;
#ifdef SCAN_FIRST                  /* M */
  i = 0; do :: i < N -> ends(i); i++ :: else -> break od;
  over = true;
#else
  over = true;
#ifndef NO_BARRIER                 /* M */
  i = 0; do :: i < N -> atomic { gets_through(i) }; i++ :: else -> break od;
#endif
  i = 0; do :: i < N -> ends(i); i++ :: else -> break od;
#endif
  done++
}
