/* open_table.pml -- does each thing that was opened end once, and begin at most once, before it ends?
 * (engine/system/open_table.hpp)
 *
 *   open   a free place, or one left by an id that was told (CAS: free or left -> writing); its words;
 *          begun = tag(id); key = id: who knows the id finds it
 *   tell   told = id, once everybody has heard of it: who looks for all that is open finds it
 *   begin  the place with my id; its words are copied; begun: tag(id) -> when (CAS); key: id -> begun id
 *          (CAS): I tell it
 *   find   the place with my id; its words are copied; still my id?
 *   end    the place with my id; key: id, begun or not -> ending (CAS): I tell it. If it was begun: when; the
 *          words are copied; key = free, but left(id) where it is not told: its opener has still to write
 *   walk   a place whose id is told; its words are copied; still open? then it is ended as above
 *
 * An id is never used again, a place is.  Each id has an opener, one that begins it and one that ends
 * it, the first id two, at any time, also before the opener has gone on ("completion before post").
 * One place, so that it is used again at once.  -DWALK: one of the two walks, only the first id begins.
 * The one who wins tells: told_begun and told_ended count.
 * Checked  each id that found room ends once, begins at most once, is not told as begun after its end was
 *          told without a beginning, is told so if its end tells it, and nobody asks in vain while it
 *          is open; what is told are the words of its own id, and when that has begun; who walks ends
 *          nothing before everybody has heard of it; at last the place can be used again.
 * Not here: memory orders, and that an id may lie in one of several places, which it never leaves.
 * Mutants  marked M
 * Run: spin -a [-D..] open_table.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef IDS
#define IDS 2
#endif
#define FREE 0
#define WRITING 1
#define KEY(i) (4*(i)+2)
#define BEGUN(i) (4*(i)+3)
#define ENDING(i) (4*(i)+4)
#define LEFT(i) (4*(i)+5)
#define TOLD(i) ((i)+1)
#define IS_OPEN(i) (key == KEY(i) || key == BEGUN(i))
#define WHEN(i) (200+(i))
#ifdef UNTAGGED                    /* M: the word does not say of whom it is                */
#define TAG(i) 100
#else
#define TAG(i) (100+(i))
#endif

byte key, begun, word, told;       /* the one place                                         */
bool known[IDS];                   /* reporters know the id                                 */
bool heard[IDS], wrote[IDS];       /* everybody has heard of it; and told was written       */
byte told_ended[IDS], told_begun[IDS];
bool ended_unbegun[IDS];
byte over;

/* What was left by an id belongs to its opener until that has told it. */
#ifdef TAKE_WHAT_IS_LEFT           /* M */
#define MAY_TAKE (key == FREE || key == LEFT(0) || key == LEFT(1))
#else
#define MAY_TAKE (key == FREE || (key == LEFT(0) && told == TOLD(0)) || (key == LEFT(1) && told == TOLD(1)))
#endif

/* Ends me, if nobody else does. */
inline end_it() {
#ifdef END_BY_LOAD                 /* M */
  atomic { k = key; won = IS_OPEN(me) };
  if :: won -> key = ENDING(me) :: else fi;
#else                              /* what fails as it began meanwhile is tried again, once  */
  atomic { if :: IS_OPEN(me) -> k = key; key = ENDING(me); won = true :: else fi };
#endif
  if
  :: won ->
#ifdef TIME_TELLS                  /* M: it has begun if there is a time, whatever the key says */
     b = begun;
     ended_unbegun[me] = (b != WHEN(me));
#else
     if :: k == BEGUN(me) -> b = begun; assert(b == WHEN(me)) :: else fi;
     ended_unbegun[me] = (k != BEGUN(me));
#endif
#ifdef FREE_FIRST                  /* M */
     key = FREE; w = word;
#elif defined(FREE_UNTOLD) || !defined(WALK) /* M */
     w = word; key = FREE;
#else
     w = word;
     if :: told == TOLD(me) -> key = FREE :: else -> key = LEFT(me) fi;
#endif
     assert(w == me);
     told_ended[me]++;
     assert(told_ended[me] == 1)
  :: else
  fi
}

active [IDS] proctype opener() {
  byte me = _pid;
  bool mine;
#ifdef OPEN_BY_LOAD                /* M */
  mine = MAY_TAKE;
  if :: mine -> key = WRITING :: else fi;
#else
  atomic { if :: MAY_TAKE -> key = WRITING; mine = true :: else -> mine = false fi }
#endif
  if
  :: mine ->
#ifdef KEY_FIRST                   /* M */
     key = KEY(me); word = me; begun = TAG(me);
#else
     word = me; begun = TAG(me); key = KEY(me);
#endif
#ifdef WALK
     known[me] = true; heard[me] = true;
     atomic { told = TOLD(me); wrote[me] = true }
#else
     known[me] = true
#endif
  :: else ->                       /* no room: it ends as unknown at once                   */
     told_ended[me]++; ended_unbegun[me] = true; known[me] = true
  fi;
#ifdef WALK
  over++
#endif
}

#ifdef WALK
#define ENDERS IDS
#define BEGINNERS 1
#define ENDED_BY(pid) ((pid) - IDS)
#define TO_BE_OVER (2*IDS + 2)     /* openers too, and who walks                            */
#else                              /* two for the first id, of which one tells              */
#define ENDERS (IDS+1)
#define BEGINNERS IDS
#define ENDED_BY(pid) (((pid) - IDS) / 2)
#define TO_BE_OVER (2*IDS + 1)
#endif
active [ENDERS] proctype ender() {
  byte me = ENDED_BY(_pid), k, b, w;
  bool won;
  (IS_OPEN(me) || known[me]);      /* an inner source may know the id from its opener's mark */
  end_it();
  atomic { k = 0; b = 0; w = 0; won = false; over++ }
}

active [BEGINNERS] proctype beginner() {
  byte me = _pid - IDS - ENDERS, w;
  bool won;
  (IS_OPEN(me) || known[me]);
  if
  :: IS_OPEN(me) ->
     w = word;                     /* the key says at last whose words these were             */
     atomic {
#ifdef BEGIN_BY_STORE              /* M */
       begun = WHEN(me); won = true
#else
       if :: begun == TAG(me) -> begun = WHEN(me); won = true
          :: else -> assert(!IS_OPEN(me))  /* only I begin it                                  */
       fi
#endif
     };
     if
     :: won ->
#ifdef BEGUN_BY_LOAD               /* M */
        won = (key == KEY(me));
        if :: won -> key = BEGUN(me) :: else fi;
        if :: won && ended_unbegun[me] -> assert(false) :: else fi
#else
        atomic {
          if :: key == KEY(me) -> key = BEGUN(me) :: else -> won = false fi;
          assert(!won || !ended_unbegun[me])
        }
#endif
     :: else
     fi;
     if
     :: won -> assert(w == me); told_begun[me]++; assert(told_begun[me] == 1)
     :: else
     fi
  :: else
  fi;
  atomic { w = 0; won = false; over++ }
}

#ifdef WALK
/* Who looks for all that is open ends what it finds, as a group's end does. */
active proctype walker() {
  byte me, k, b, w;
  bool won;
  if
  :: IS_OPEN(0) -> me = 0
  :: IS_OPEN(1) -> me = 1
  :: true -> goto out
  fi;
#ifndef WALK_UNTOLD                /* M */
  atomic { if :: told == TOLD(me) :: else -> assert(!IS_OPEN(me) || !wrote[me]); goto out fi };
#endif
  w = word;
  if :: IS_OPEN(me) -> assert(w == me) :: else -> goto out fi;
  end_it();
  assert(!won || heard[me]);
out:
  atomic { me = 0; k = 0; b = 0; w = 0; won = false; over++ }
}

#else
/* Whoever knows the id may ask what it is. */
active proctype finder() {
  byte w;
  if
  :: IS_OPEN(0) ->
     w = word;
#ifdef NO_RECHECK                  /* M */
     assert(w == 0)
#else
     assert(!IS_OPEN(0) || w == 0)
#endif
  :: else
  fi
}
#endif

/* When all is over each id has ended. */
active proctype check() {
  byte i;
  (over == TO_BE_OVER);
  i = 0;
  do
  :: i < IDS ->
     assert(told_ended[i] == 1);
     assert((told_begun[i] == 1) == !ended_unbegun[i]);
     i++
  :: else -> break
  od;
  assert(MAY_TAKE)                 /* the place can be used again                           */
}
