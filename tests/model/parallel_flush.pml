/* parallel_flush.pml -- two workers hand out runs of one lane at once; flush() returns when all that
 * was accepted before the call has been heard, although younger runs may end earlier.
 *   worker:  lease; take a run; apart = odd; taken += 1; give the lease on; callbacks;
 *            consumed++ (RMW); apart = even
 *   flush:   mark = published; wait for taken >= mark; look at each worker's apart; wait for those
 *            that were odd to change
 * Properties: flush is honest and ends; never more than CAP events in flight; all is heard.
 *   default            as above                                                      -> must hold
 *   -DTAKEN_FIRST      taken is raised before apart says that we are in a run        -> flush lies
 *   -DBY_CONSUMED      flush waits until as many are consumed as were marked         -> flush lies
 *   -DNO_GRACE         flush does not wait for runs that it finds                    -> flush lies
 *   -DEVEN_EARLY       apart is even before the callbacks                            -> flush lies
 *   -DEARLY_CONSUMED   consumed is raised before the callbacks                       -> over the bound
 *   -DSTORE_CONSUMED   consumed is raised by a load and a store                      -> counted short
 * Run: spin -a [-D..] parallel_flush.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m100000
 */
#define NW 2
#define NE 4
#define CAP 3
byte published, taken, consumed, heard, running;
bool lease, event_over[NE];
byte apart[NW];

proctype publisher() {
  byte k = 0;
  do
  :: k < NE -> (published - consumed < CAP);
     atomic { published++; assert(published - heard <= CAP) };
     k++
  :: else -> break
  od;
  (heard == NE && taken == NE && apart[0] % 2 == 0 && apart[1] % 2 == 0);
#ifndef EVEN_EARLY  /* there apart says nothing of consumed */
  assert(consumed == NE)
#endif
}

proctype worker(byte me) {
  byte mine, t;
  do
  :: atomic { !lease && published > taken -> lease = 1; mine = taken };
#ifdef TAKEN_FIRST
     taken++;
     apart[me]++;
#else
     apart[me]++;
     taken++;
#endif
     lease = 0;
#ifdef EVEN_EARLY
     apart[me]++;
#endif
#ifdef EARLY_CONSUMED
     consumed++;
#endif
     /* the callbacks run here */
     atomic { event_over[mine] = 1; heard++ };
#ifdef STORE_CONSUMED
     t = consumed;
     consumed = t + 1;
#elif !defined(EARLY_CONSUMED)
     consumed++;
#endif
#ifndef EVEN_EARLY
     apart[me]++
#endif
  :: !lease && taken == NE -> break
  od
}

proctype flusher() {
  byte mark, i, a;
  mark = published;
#ifdef BY_CONSUMED
  (consumed >= mark);
#else
  (taken >= mark);
#ifndef NO_GRACE
  byte seen[NW];
  i = 0;
  do :: i < NW -> seen[i] = apart[i]; i++ :: else -> break od;
  i = 0;
  do :: i < NW -> (seen[i] % 2 == 0 || apart[i] != seen[i]); i++ :: else -> break od;
#endif
#endif
  i = 0;
  do :: i < mark -> assert(event_over[i]); i++ :: else -> break od
}

init { atomic {
  run publisher(); run worker(0); run worker(1); run flusher()
} }
