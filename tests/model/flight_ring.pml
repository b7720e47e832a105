/* flight_ring.pml -- what does a reader find in a ring of records, while its writer writes, or after SIGKILL?
 * (engine/flight/ring_writer.hpp, engine/flight/ring_reader.cpp)
 *
 *   record, of k cells                              read
 *     busy = 1                                        r1 = reserved ; end = committed ; w = written
 *     p, n, b = own position, number, last length     copy all cells, in any order
 *     reserved = p + k                                r2 = reserved
 *     number, length, length before, payload          readable: what begins in [r2 - CELLS, end), and the one
 *     sum of these and of p                             at end if it is whole: generation and sum are right
 *     generation = p + 1                              overwritten: the number of the first readable, less one;
 *     committed = p + k ; written = n                   exact if the record before it begins outside
 *     own position, number, last length ; busy = 0
 *
 * Records have one or two cells and wrap round; R of them go through a ring of CELLS. The sum is taken to be perfect.
 * Default: SIGKILL at any step, then the memory is read. Stores of a killed thread are all done or not begun, in
 * the order of the program, so here the order alone would do: NO_SUM holds. -DLIVE: the writer goes on while a reader
 * copies, the header's generation first or last, the cells upwards or downwards; what its second look says is
 * overwritten it leaves out. Headers are written in one step there, as they are copied.
 * -DHANDLER: a signal handler records too, at any step of its thread's record, twice at most: into the ring if that is
 * not busy, else into its annex, a ring of its own.
 * Memory: one thread writes a ring, and reads only what it wrote; on TSO and with release stores others see its stores in
 * order, so a store buffer would add nothing. The order of a reader's loads is left open here.
 * Checked  what is read as valid is what was written, each once, in order; what is overwritten is exactly
 *          what the reservation reaches; last = readable + overwritten; nothing is unreadable but the one
 *          that was being written.
 * Mutants  marked M
 * Run: spin -a [-D..] flight_ring.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#ifndef R
#define R 5
#endif
#ifndef CELLS
#define CELLS 4
#endif
#define RMAX (R+1)                 /* numbers: one more for a handler's                       */
#ifdef HANDLER
#define RINGS 2
#else
#define RINGS 1
#endif

byte gen[RINGS*CELLS], num[RINGS*CELLS], size[RINGS*CELLS], before[RINGS*CELLS], load[RINGS*CELLS];
int sum[RINGS*CELLS];
byte reserved[RINGS], committed[RINGS], written[RINGS];
byte own_p[RINGS], own_n[RINGS], own_b[RINGS];        /* the writer's own words                */
bool busy;
/* ghosts, of each ring and number */
byte pos_of[RINGS*(RMAX+2)], len_of[RINGS*(RMAX+2)];
byte begun[RINGS], done[RINGS];

#define AT(r,p) ((r)*CELLS + (p) % CELLS)
#define GHOST(r,n) ((r)*(RMAX+2) + (n))
/* All that a record holds, in one number: a perfect sum. */
#ifdef STALE_LENGTH                /* M: the length is not in the sum, and is written last    */
#define SUM(p,n,k,b,v,w) (((((p)*8 + (n))*4 + (b))*8 + (v))*8 + (w))
#elif defined(NO_GENERATION)       /* M: neither word says which lap a record is of           */
#define SUM(p,n,k,b,v,w) ((((((n))*4 + (k))*4 + (b))*8 + (v))*8 + (w))
#else
#define SUM(p,n,k,b,v,w) ((((((p)*8 + (n))*2 + (k)-1)*4 + (b))*8 + (v))*8 + (w))
#endif

inline begin_of(r) {
#ifdef SHARED                      /* M: two writers take their places from one cursor        */
  atomic { p = own_p[r]; n = own_n[r]+1; b = own_b[r]; own_p[r] = p+k; own_n[r] = n; own_b[r] = k;
    begun[r] = n; pos_of[GHOST(r,n)] = p; len_of[GHOST(r,n)] = k; reserved[r] = p+k }
#else
  p = own_p[r]; n = own_n[r]+1; b = own_b[r];
  atomic { begun[r] = n; pos_of[GHOST(r,n)] = p; len_of[GHOST(r,n)] = k;
#ifndef RESERVED_LATE              /* M */
    reserved[r] = p+k
#endif
  }
#endif
}

inline write(r) {                  /* k: the cells                                            */
  begin_of(r);
#ifdef COMMIT_FIRST                /* M: the cursor before the payload                        */
  committed[r] = p+k;
  written[r] = n;
#endif
#ifdef LIVE
  atomic {                         /* as a reader copies them: fewer states                   */
#endif
  num[AT(r,p)] = n;
  before[AT(r,p)] = b;
#ifndef STALE_LENGTH
  size[AT(r,p)] = k;
#endif
#ifdef LIVE
  skip };
#endif
  load[AT(r,p)] = n;
  if :: k == 2 -> load[AT(r,p+1)] = n :: else fi;
#ifndef NO_SUM                     /* M */
  sum[AT(r,p)] = SUM(p,n,k,b,n,(k == 2 -> n : 0));
#endif
  gen[AT(r,p)] = p+1;
#ifdef RESERVED_LATE
  reserved[r] = p+k;
#endif
#ifndef COMMIT_FIRST
  committed[r] = p+k;
#ifdef STALE_LENGTH
  size[AT(r,p)] = k;
#endif
  written[r] = n;
#endif
#ifndef SHARED
  own_p[r] = p+k; own_n[r] = n; own_b[r] = k;
#endif
  done[r] = n
}

#ifndef HANDLER
#ifdef SHARED
#define WRITERS 2
#define EACH 3
#else
#define WRITERS 1
#define EACH R
#endif
proctype writer() {
  byte i, k, p, n, b;
  do
  :: i < EACH ->
     i++;
     if :: k = 1 :: k = 2 fi;
     write(0)
  :: else -> break
  od
}
#else
byte in_handler, signals;
proctype writer() provided (in_handler == 0) {
  byte i, k, p, n, b;
  do
  :: i < R-2 ->
     i++;
     if :: k = 1 :: k = 2 fi;
#ifdef BUSY_LATE                   /* M: the handler finds the ring free though its position was read */
     p = own_p[0]; n = own_n[0]+1; b = own_b[0];
     busy = 1;
     atomic { begun[0] = n; pos_of[GHOST(0,n)] = p; len_of[GHOST(0,n)] = k; reserved[0] = p+k };
     num[AT(0,p)] = n; before[AT(0,p)] = b; size[AT(0,p)] = k; load[AT(0,p)] = n;
     if :: k == 2 -> load[AT(0,p+1)] = n :: else fi;
     sum[AT(0,p)] = SUM(p,n,k,b,n,(k == 2 -> n : 0));
     gen[AT(0,p)] = p+1;
     committed[0] = p+k; written[0] = n;
     own_p[0] = p+k; own_n[0] = n; own_b[0] = k; done[0] = n;
#else
     busy = 1;
     write(0);
#endif
     busy = 0
  :: else -> break
  od
}
proctype handler() {
  byte r, k, p, n, b;
  bool was;
  was = busy;
#ifndef NO_ANNEX                   /* M: it writes in the middle of its thread's record        */
  r = (was -> 1 : 0);
#endif
  if :: k = 1 :: k = 2 fi;
  busy = 1;
  write(r);
  busy = was;
  in_handler = 0
}
active proctype raises() {
  atomic { in_handler == 0 -> in_handler = 1; signals++; run handler() };
  atomic { in_handler == 0 -> in_handler = 1; signals++; run handler() }
}
#endif

/* ---- the reader ---- */
byte cgen[CELLS], cnum[CELLS], clen[CELLS], cbefore[CELLS], cload[CELLS];
int csum[CELLS];

inline copy_sum(r,c) { cnum[c] = num[r*CELLS+c]; clen[c] = size[r*CELLS+c]; cbefore[c] = before[r*CELLS+c]; csum[c] = sum[r*CELLS+c] }

inline look(at) {                  /* ok: is there a whole record, by what was copied?        */
  c = (at) % CELLS; c2 = ((at)+1) % CELLS;
  ok = (clen[c] == 1 || clen[c] == 2) && cnum[c] > 0;
#ifndef NO_GENERATION
  ok = ok && cgen[c] == (at)+1;
#endif
#ifndef NO_SUM
  ok = ok && csum[c] == SUM(at, cnum[c], clen[c], cbefore[c], cload[c], (clen[c] == 2 -> cload[c2] : 0));
#endif
}

inline take(at) {                  /* a record that is read as valid                          */
  assert(cnum[c] <= begun[r] && pos_of[GHOST(r,cnum[c])] == (at) && len_of[GHOST(r,cnum[c])] == clen[c]);
  assert(cload[c] == cnum[c] && (clen[c] == 1 || cload[c2] == cnum[c]));
  if
  :: readable == 0 -> first = cnum[c]; holes = holes + (cnum[c] > 1 && (at) - cbefore[c] >= low -> 1 : 0)
  :: else -> holes = holes + (cnum[c] - last - 1)
  fi;
  last = cnum[c]; readable++; at = at + clen[c]
}

inline judge() {                   /* the copy, by r2 and end                                 */
  low = (r2 > CELLS -> r2 - CELLS : 0);
  at = low; first = 0; last = 0; readable = 0; holes = 0;
  do
  :: at < end ->
     look(at);
     if :: ok -> take(at) :: else -> at++ fi
  :: else -> break
  od;
  if
  :: at == end ->                  /* perhaps its writer was stopped before the cursor        */
     look(at);
     if :: ok -> take(at) :: else fi
  :: else
  fi;
  if :: readable == 0 -> last = w; first = w+1 :: else fi;
  assert(holes == 0);
  over = first - 1;
  assert(last == readable + over);
  /* exactly what begins before the window is gone */
  n = 1;
  do
  :: n <= last -> assert((n <= over) == (pos_of[GHOST(r,n)] < low)); n++
  :: else -> break
  od
}

#ifdef LIVE
active proctype reader() {
  byte r, r1, r2, end, w, low, at, c, c2, first, last, readable, holes, over, n, i, had;
  bool ok, downwards, gen_first;
  atomic { had = done[0]; w = written[0] };
  end = committed[0];
  if :: downwards = 0 :: downwards = 1 fi;
  if :: gen_first = 0 :: gen_first = 1 fi;
#ifdef NO_SECOND_LOOK              /* M: what was overwritten meanwhile looks unreadable       */
  r2 = reserved[0];
#endif
  do
  :: i < CELLS ->
     c = (downwards -> CELLS-1-i : i);
     if
     :: gen_first -> cgen[c] = gen[c]; atomic { copy_sum(0,c) }; cload[c] = load[c]
     :: else -> cload[c] = load[c]; atomic { copy_sum(0,c) }; cgen[c] = gen[c]
     fi;
     i++
  :: else -> break
  od;
#ifndef NO_SECOND_LOOK
  r2 = reserved[0];
#else
  skip;
#endif
  d_step {
    judge();
    assert(last >= had || readable == 0);
    assert(last <= begun[0])
  }
}
#else
inline dead(ring) {
  r = ring; i = 0;
  do
  :: i < CELLS -> cgen[i] = gen[r*CELLS+i]; copy_sum(r,i); cload[i] = load[r*CELLS+i]; i++
  :: else -> break
  od;
  r2 = reserved[r]; end = committed[r]; w = written[r];
  judge();
  assert(done[r] <= last && last <= begun[r] && begun[r] <= last + 1)
}
active proctype kill() {            /* what is there if all writers die at this step          */
  byte r, r2, end, w, low, at, c, c2, first, last, readable, holes, over, n, i;
  bool ok;
  d_step {
    dead(0);
#ifdef HANDLER
    dead(1);
#endif
    skip
  }
}
#endif
init { atomic {
#ifdef SHARED
  run writer();
#endif
  run writer()
} }
