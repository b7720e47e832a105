/* open_table.pml -- does each thing that was opened end once, and begin at most once, before it ends?
 * (engine/system/open_table.hpp)
 *
 *   open   a free place (CAS: free -> writing); its words; begun = tag(id); key = id
 *   begin  the place with my id; its words are copied; begun: tag(id) -> begun (CAS): I tell it
 *   find   the place with my id; its words are copied; still my id?
 *   end    the place with my id; key: id -> ending (CAS): I tell it. begun is taken (exchange), the words
 *          are copied; key = free
 *
 * An id is never used again, a place is.  Each id has an opener, one that begins it and one that ends
 * it, the first id two, at any time, also before the opener has gone on ("completion before post").
 * One place, so that it is used again at once.
 * The one who wins tells: told_begun and told_ended count.
 * Checked  each id that found room ends once, begins at most once, is not told as begun after its end was
 *          told without a beginning; what is told are the words of its own id.
 * Not here: memory orders, and that an id may lie in one of several places, which it never leaves.
 * Mutants  marked M
 * Run: spin -a [-D..] open_table.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef IDS
#define IDS 2
#endif
#define FREE 0
#define WRITING 1
#define KEY(i) (2*(i)+2)
#define ENDING(i) (2*(i)+3)
#define BEGUN 250
#ifdef UNTAGGED                    /* M: the word does not say of whom it is                */
#define TAG(i) 100
#else
#define TAG(i) (100+(i))
#endif

byte key, begun, word;             /* the one place                                         */
bool known[IDS];     /* reporters know the id                                 */
byte told_ended[IDS], told_begun[IDS];
bool ended_unbegun[IDS];
byte over;

active [IDS] proctype opener() {
  byte me = _pid;
  bool mine;
#ifdef OPEN_BY_LOAD                /* M */
  mine = (key == FREE);
  if :: mine -> key = WRITING :: else fi;
#else
  atomic { if :: key == FREE -> key = WRITING; mine = true :: else -> mine = false fi }
#endif
  if
  :: mine ->
#ifdef KEY_FIRST                   /* M */
     key = KEY(me); word = me; begun = TAG(me);
#else
     word = me; begun = TAG(me); key = KEY(me);
#endif
     known[me] = true
  :: else ->                       /* no room: it ends as unknown at once                   */
     told_ended[me]++; known[me] = true
  fi
}

/* Two for the first id, of which one tells; one for the second, which takes the place again. */
active [IDS+1] proctype ender() {
  byte me = (_pid - IDS) / 2, b, w;
  bool won;
  (key == KEY(me) || known[me]);   /* an inner source may know the id from its opener's mark */
#ifdef END_BY_LOAD                 /* M */
  won = (key == KEY(me));
  if :: won -> key = ENDING(me) :: else fi;
#else
  atomic { if :: key == KEY(me) -> key = ENDING(me); won = true :: else -> won = false fi }
#endif
  if
  :: won ->
#ifdef LEAVES_BEGUN                /* M: the word stays for who begins late                 */
     b = begun;
#else
     atomic { b = begun; begun = 0 }
#endif
#ifdef FREE_FIRST                  /* M */
     key = FREE; w = word;
#else
     w = word; key = FREE;
#endif
     assert(w == me);
     ended_unbegun[me] = (b != BEGUN);
     told_ended[me]++;
     assert(told_ended[me] == 1)
  :: else
  fi;
  over++
}

active [IDS] proctype beginner() {
  byte me = _pid - 2*IDS - 1, w;
  bool won;
  (key == KEY(me) || known[me]);
  if
  :: key == KEY(me) ->
     w = word;                     /* begun says whose words these were, so no look again    */
     atomic {
#ifdef BEGIN_BY_STORE              /* M */
       begun = BEGUN; won = true
#else
       if :: begun == TAG(me) -> begun = BEGUN; won = true :: else -> won = false fi
#endif
       assert(!won || !ended_unbegun[me])
     }
     if
     :: won -> assert(w == me); told_begun[me]++; assert(told_begun[me] == 1)
     :: else
     fi
  :: else
  fi;
  over++
}

/* Whoever knows the id may ask what it is. */
active proctype finder() {
  byte w;
  if
  :: key == KEY(0) ->
     w = word;
#ifdef NO_RECHECK                  /* M */
     assert(w == 0)
#else
     assert(key != KEY(0) || w == 0)
#endif
  :: else
  fi
}

/* When all is over each id has ended. */
active proctype check() {
  byte i;
  (over == 2*IDS + 1);
  i = 0;
  do
  :: i < IDS -> assert(told_ended[i] == 1); i++
  :: else -> break
  od
}
