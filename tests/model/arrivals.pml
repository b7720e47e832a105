/* arrivals.pml -- may something be passed over as unheard though a subscriber's coming, or the end, was over before?
 * (engine/system/arrivals.hpp, adapters/sources/collective/communicator_gate.hpp)
 *
 *   arrives   listed = 1; count++; then subscribe() returns
 *   leaves    listed = 0
 *   ends      quiet = never; over = 1; then end() returns
 *   issues    count == quiet?  then it is passed over, by one look;
 *             else: over? then it is refused; before = quiet; c = count; listed? then it is told;
 *             else quiet = c, if it is `before` still, and that is not "never"
 *
 * A subscriber that leaves and comes again; two threads that issue twice; one that ends.
 * Checked  what is issued after subscribe() has returned and before reset() is called, or by who can know that it is over, is not passed over.
 * Not here: memory orders, which arrivals_relacy.cpp searches.
 * Mutants  marked M
 * Run: spin -a [-D..] arrivals.pml && gcc -O1 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#define NEVER 0
byte count = 1;
byte quiet = 255;                  /* nobody has looked yet                                 */
byte listed;                       /* how many subscribers                                  */
byte heard;                        /* the number of its visit, from when subscribe() has    */
                                   /* returned until it leaves; else 0                      */
bool over;

inline arrives(visit) {
#ifdef COUNT_FIRST                 /* M */
  atomic { count++ };
  atomic { listed++ };
#else
  atomic { listed++ };
  atomic { count++ };
#endif
  heard = visit
}
inline leaves() {
  heard = 0;
  atomic { listed-- }
}

/* It must be told: who was heard when it began is heard still. */
#define MUST (by_end || (visit_then != 0 && heard == visit_then))

inline issues() {
  d_step { visit_then = heard; by_end = over };
  was = quiet;
  if
  :: count == was -> assert(!MUST) /* passed over                                           */
  :: else ->
#ifdef COUNT_LATE                  /* M */
     busy = over;
     before = quiet;
     busy = busy || (listed > 0);
     c = count;
#else
     busy = over;
     before = quiet;
     c = count;
     busy = busy || (listed > 0);
#endif
     assert(busy || !MUST);
     if
     :: busy -> skip
     :: else ->
#ifdef QUIET_BY_STORE              /* M: over what the end has said                         */
        quiet = c
#else
        atomic {
          if
#ifdef OVER_NEVER                  /* M: "never" is replaced as any other                   */
          :: quiet == before -> quiet = c
#else
          :: quiet == before && before != NEVER -> quiet = c
#endif
          :: else
          fi
        }
#endif
     fi
  fi
}

active proctype comes_again() { arrives(1); leaves(); arrives(2) }
active proctype ends() {
#ifdef SAID_FIRST                  /* M */
  over = true;
  quiet = NEVER
#else
#ifndef NOT_SAID                   /* M */
  quiet = NEVER;
#endif
  over = true
#endif
}
active [2] proctype issuer() {
  byte was, before, c, visit_then;
  bool by_end, busy;
  issues(); issues()
}
