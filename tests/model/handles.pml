/* handles.pml -- is a handle told apart from all that had its address, and from all others?
 * (adapters/sources/cuda/cuda_handles.*)
 *
 *   made                                          gone
 *     my key in a place? take the place (CAS),      its generation is read
 *       generation one more                         floor of its set >= that generation
 *     else: a place that is free or dead (CAS),     key: dead (CAS)
 *       generation above the floors of both sets
 *     a place used before: floor >= generation    find
 *     the place's data; key, live                   the place with my key; its data; still my key?
 *                                               end_all, in any thread
 *                                                 of a live place: its generation is read; still its key?
 *                                                 floor of its set >= that generation; key: dead (CAS)
 *
 * All words are sequentially consistent, so memory is not modelled.  Two sets of one place each are the
 * homes of all KEYS; calls for one key do not overlap, so each has one thread.
 * Checked  no key gets a generation twice, though the dead are evicted; what is found is the key's own;
 *          a live handle keeps its place, unless end_all() ends it (ENDS times; then that is not checked).
 * -DBACK: of each release CUDA may refuse the first try, after it was heard; the handle goes on with
 *          its generation, or is unknown if its place was given away meanwhile.
 * Mutants  marked M
 * Run: spin -a [-D..] handles.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef KEYS
#define KEYS 2
#endif
#ifndef LIVES
#define LIVES 2
#endif
#ifndef ENDS
#define ENDS 0
#endif
#ifdef OTHERS                  /* the other handles have so many lives                    */
#define LIVES_OF(me) (me -> OTHERS : LIVES)
#else
#define LIVES_OF(me) LIVES
#endif
#define NONE 2
#define TAKEN 1
#define KEY(k) (2*(k)+2)           /* even: dead; one more: live                              */
#define OF(w) ((w) & 254)

byte key[2], gen[2], whose[2], floors[2];

inline look() {                    /* p: the place with my key, or NONE                       */
  w = key[0];
  if
  :: w > 1 && OF(w) == KEY(me) -> p = 0
  :: else ->
     w = key[1];
     if :: w > 1 && OF(w) == KEY(me) -> p = 1 :: else -> p = NONE fi
  fi
}
inline read() {                    /* g, d; g = 0: it was given to another                    */
  g = gen[p];
  d = whose[p];
#ifndef NO_RECHECK                 /* M */
  if :: OF(key[p]) != KEY(me) || key[p] == TAKEN -> g = 0 :: else -> skip fi
#endif
}
inline claim() {                   /* any place that is free or dead                          */
  if :: s = 0 :: s = 1 fi;
  tries = 0; p = NONE;
  do
  :: tries < 2 && p == NONE ->
     w = key[s];
     if
     :: w != TAKEN && (w & 1) == 0 ->
#ifdef CLAIM_BY_LOAD               /* M */
        key[s] = TAKEN; p = s
#else
        atomic { if :: key[s] == w -> key[s] = TAKEN; p = s :: else -> skip fi }
#endif
     :: else -> skip
     fi;
     tries++; s = 1 - s
  :: else -> break
  od
}
inline raise(at, to) {
  atomic { if :: floors[at] < to -> floors[at] = to :: else -> skip fi }
}
proctype handle(byte me) {
  byte n, p, w, g, d, s, tries, last, f0, f1;
  bool used;                       /* the place had a handle before                           */
#ifdef BACK
  bool dead, back;                 /* it is released; and that was refused                    */
#endif
  do
  :: n < LIVES_OF(me) ->
     n++;
     look();
     g = 0; used = true;
     if
     :: p != NONE ->
#ifdef REVIVE_BY_LOAD              /* M */
        key[p] = TAKEN; g = gen[p] + 1
#else
        do                         /* it may be ended meanwhile, and is then still here       */
        :: atomic {
             if
             :: key[p] == w -> key[p] = TAKEN; g = 1
#ifndef ENDED_IS_ANOTHERS          /* M */
             :: key[p] != w && OF(key[p]) == KEY(me) -> w = key[p]; goto again
#endif
             :: else -> skip
             fi
           };
           break;
again:     skip
        od;
        if :: g -> g = gen[p] + 1 :: else -> skip fi
#endif
     :: else -> skip
     fi;
     if
     :: g == 0 ->
        claim();
        used = (w != 0);
        f0 = floors[0]; f1 = floors[1];
#ifdef ONE_FLOOR                   /* M: of the set in which it lies now only */
        if :: p == 0 -> f1 = 0 :: p == 1 -> f0 = 0 :: else -> skip fi;
#endif
        if :: f0 > f1 -> g = f0 + 1 :: else -> g = f1 + 1 fi
     :: else -> skip
     fi;
     if
     :: p == NONE -> skip          /* no room: counted */
     :: else ->
        atomic { assert(g > last); last = g };
#ifndef NO_FLOOR_AT_BIRTH          /* M */
        if :: used -> raise(p, g) :: else -> skip fi;
#endif
        gen[p] = g;
        whose[p] = me;
        key[p] = KEY(me) + 1;
        look();
        if
        :: p == NONE -> assert(ENDS)         /* it lives: nobody takes its place */
        :: else ->
           read();
           assert((ENDS && g == 0) || (g == last && d == me));
           if
#ifdef UNHEARD                     /* of some lives the end is not heard                      */
           :: skip
#endif
           :: g && (w & 1) ->
#ifndef NO_FLOOR                   /* M */
              raise(p, g);
#endif
              atomic { if :: key[p] == w -> key[p] = KEY(me) :: else -> skip fi };
#ifdef BACK
              dead = 1
#endif
           :: else -> skip
           fi
        fi;
#ifdef BACK
        if
        :: dead ->                 /* CUDA refuses */
           look();
           if
           :: p != NONE ->
#ifdef BACK_BY_LOAD                /* M */
              key[p] = KEY(me) + 1; back = 1;
#else
              atomic { if :: key[p] == KEY(me) -> key[p] = KEY(me) + 1; back = 1 :: else -> skip fi };
#endif
           :: else -> skip
           fi;
           if
           :: back ->
              look();
              if
              :: p == NONE -> assert(ENDS)   /* it lives again: nobody takes its place */
              :: else ->
                 read();
                 assert((ENDS && g == 0) || (g == last && d == me && (ENDS || (w & 1))));
                 if
                 :: g && (w & 1) ->
                    raise(p, g);
                    atomic { if :: key[p] == w -> key[p] = KEY(me) :: else -> skip fi }
                 :: else -> skip
                 fi
              fi;
              back = 0
           :: else -> skip
           fi
        :: skip
        fi;
        dead = 0;
#endif
        look();
        if
        :: p != NONE -> read(); assert(g == 0 || (g == last && d == me))
        :: else -> skip
        fi
     fi
  :: else -> break
  od
}
proctype end_all() {               /* of all that it finds live                               */
  byte n, p, w, g;
  do
  :: n < ENDS ->
     n++;
     if :: p = 0 :: p = 1 fi;
     w = key[p];
     if
     :: w & 1 && w != TAKEN ->
        g = gen[p];
        if
        :: OF(key[p]) != OF(w) || key[p] == TAKEN -> skip
        :: else ->
#ifdef FLOOR_LATE                  /* M: after it is dead */
           atomic { if :: key[p] == w -> key[p] = OF(w) :: else -> skip fi };
           raise(p, g)
#else
           raise(p, g);
           atomic { if :: key[p] == w -> key[p] = OF(w) :: else -> skip fi }
#endif
        fi
     :: else -> skip
     fi
  :: else -> break
  od
}
init { atomic {
  byte t = 0;
  do :: t < KEYS -> run handle(t); t++ :: else -> t = 0; break od;
  if :: ENDS -> run end_all() :: else -> skip fi
} }
