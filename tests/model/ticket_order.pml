/* ticket_order.pml -- publishers on lanes of their own take tickets of one counter; a merger hands
 * events out in ticket order over all lanes, although each lane shows only its own.
 *   publisher: word = busy; ticket = counter++ (RMW); slot = ticket; word = published.
 *              Refused after the claim: word = what it was.
 *   merger:    now = counter; then each lane's word; then heads, as long as one is due.
 *              A lane with a head: nothing smaller will come (a lane's tickets grow).
 *              No head, not busy, all published taken: whatever comes was ticketed after now.
 *              No head, busy: wait; or, the wait being over, pass it over until its word changes.
 *              The smallest head is due if no lane may still bring a smaller one.
 * Properties: tickets come in order, but for an event whose very claim was passed over; everything
 * published is handed out once (no invalid end state).
 *   default            the first publisher is refused at most once after a claim     -> must hold
 *   -DGAPS             a busy lane may be passed over at any time                    -> must hold
 *   -DTSO              words go through store buffers, which the RMW empties         -> must hold
 *   -DFEED             the lanes are drained by their channels' owner into lanes of a mailbox, which
 *                      says how far it has come (fed); the merger sees heads there   -> must hold
 *   -DLATE             the second lane is listed while the merger runs; what comes from lanes that are
 *                      not listed yet was ticketed after now                         -> must hold
 *   -DLATE -DNO_LIMIT  lanes that are not listed yet are not waited for              -> disorder
 *   -DTICKET_FIRST     ticket before busy is said                                    -> disorder
 *   -DTICKET_LAST      ticket after the event is published                           -> disorder
 *   -DTSO -DRELAXED_TICKET  the RMW does not empty the store buffer                  -> disorder
 *   -DNOW_LAST         counter read after the lanes' words                           -> disorder
 *   -DIGNORE_BUSY      a busy lane without a head is taken for an idle one           -> disorder
 *   -DKEEP_CLAIM       a refused claim is not taken back                             -> stranded
 *   -DNEVER_PASS       a publisher dies between claim and publish, nobody passes it  -> stranded
 *   -DGAPS -DPASS_FOR_EVER   a lane stays passed over when its word has changed      -> disorder
 *   -DGAPS -DPASS_ALL  what a passed lane says next is not waited for either         -> disorder
 *   -DFEED -DFED_EARLY fed is raised before the event is in the mailbox              -> disorder
 *   -DFEED -DNO_FED    a source that is not busy is taken for a drained one          -> disorder
 * Run: spin -a [-D..] ticket_order.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
 */
#define NP 2
#ifndef NE
#define NE 2
#endif
#ifdef FEED
#define EVENTS(i) (i == 0 -> 1 : NE)  /* enough to be overtaken and to overtake */
#else
#define EVENTS(i) NE
#endif
#define NONE 255
#define INF 254
byte counter = 1;
byte word[NP];                  /* 2 * published + busy, as others see it */
byte slot[NP * NE], slots[NP];  /* tickets as written; a slot may be seen before the word */
byte box[NP * NE], boxed[NP], fed[NP];
byte accepted[NP], taken[NP], done, last;
#ifdef LATE
bool listed;                    /* the second lane is among those that the merger looks at */
#define KNOWN(i) (i == 0 || known)
#else
#define KNOWN(i) true
#endif
byte passed[NP];                /* counted: this claim (event number, from 1) was passed over */

#ifdef TSO
byte buffered[NP];              /* the publisher's store buffer: one word, or NONE */
proctype buffer(byte i) {
end: do :: atomic { buffered[i] != NONE -> word[i] = buffered[i]; buffered[i] = NONE } od
}
inline say(v) { atomic { buffered[i] == NONE -> buffered[i] = v } }
#else
inline say(v) { word[i] = v }
#endif

#if defined(TSO) && !defined(RELAXED_TICKET)
#define RMW buffered[i] == NONE
#else
#define RMW true
#endif
inline take_ticket() { atomic { RMW -> t = counter; counter++ } }

proctype publisher(byte i) {
  byte k = 0, t = 0;
#ifdef FEED
  bool refused = 1;
#else
  bool refused = i;
#endif
#ifdef LATE
  if :: i == 1 -> listed = 1 :: else fi;
#endif
  do
  :: k < EVENTS(i) ->
#ifdef TICKET_FIRST
     take_ticket();
#endif
     say(2 * k + 1);
#ifdef NEVER_PASS
     if :: i == 0 && k == 1 -> break :: else fi;
#endif
#if !defined(TICKET_FIRST) && !defined(TICKET_LAST)
     take_ticket();
#endif
     if
     :: !refused -> refused = 1;
#ifdef KEEP_CLAIM
        break
#else
        say(2 * k)
#endif
     :: atomic { slot[i * NE + k] = t; slots[i]++; accepted[i]++ };
        k++;
        say(2 * k);
#ifdef TICKET_LAST
        take_ticket(); slot[i * NE + k - 1] = t
#endif
     fi
  :: else -> break
  od;
  done++
}

#ifdef FEED
proctype feeder(byte i) {       /* the channel's owner, at any time */
end:
  do
  :: fed[i] < slots[i] && boxed[i] == fed[i] ->
#ifdef FED_EARLY
     fed[i]++;
#endif
     atomic { box[i * NE + boxed[i]] = slot[i * NE + boxed[i]]; boxed[i]++ };
#ifndef FED_EARLY
     fed[i]++
#endif
  od
}
#define HEADS boxed
#define HEAD(i) box[i * NE + taken[i]]
#ifdef NO_FED
#define HANDED(i) taken[i]
#else
#define HANDED(i) f[i]
#endif
#else
#define HEADS slots
#define HEAD(i) slot[i * NE + taken[i]]
#define HANDED(i) w[i] / 2
#endif

#ifdef IGNORE_BUSY
#define IDLE(i) true
#elif defined(NO_FED)
#define IDLE(i) w[i] % 2 == 0
#else
#define IDLE(i) w[i] % 2 == 0 && DRAINED(i)
#endif
#define DRAINED(i) HANDED(i) == w[i] / 2 && taken[i] >= u[i]
#ifdef PASS_FOR_EVER
#define PASSED(i) over[i] != 0
#else
#define PASSED(i) over[i] == w[i] && w[i] % 2 == 1
#endif

#ifdef FEED
inline look(i) { w[i] = word[i]; f[i] = fed[i]; u[i] = boxed[i] }
#else
inline look(i) { atomic { w[i] = word[i]; u[i] = w[i] / 2 } }
#endif
inline see(i) { atomic { if :: KNOWN(i) && taken[i] < HEADS[i] -> h[i] = HEAD(i) :: else -> h[i] = NONE fi } }
inline heads() { see(0); see(1) }
/* What may still come from lane i: its head, a bound, or all is possible (0). */
inline bound(i) {
  if
  :: h[i] != NONE -> b[i] = h[i]
  :: else ->
     if
#ifdef LATE
     :: !KNOWN(i) ->
#ifdef NO_LIMIT
        b[i] = INF
#else
        b[i] = now
#endif
#endif
     :: KNOWN(i) && PASSED(i) ->
#ifdef PASS_ALL
        b[i] = INF
#else
        b[i] = now
#endif
     :: KNOWN(i) && !(PASSED(i)) -> if :: IDLE(i) -> b[i] = now :: else -> b[i] = 0 fi
     fi
  fi
}
inline hand_out(i, o) {
  if
  :: !out && h[i] != NONE && h[i] <= b[o] ->
     assert(h[i] != 0);  /* it has its ticket */
     in_order = h[i] > last || passed[i] == taken[i] + 1;
     assert(in_order == 1);
     if :: h[i] > last -> last = h[i] :: else fi;
     taken[i]++;
     out = 1
  :: else
  fi
}
inline pass_over(i) {
  if
  :: b[i] == 0 && w[i] % 2 == 1 && DRAINED(i) ->
     if :: over[i] = w[i]; passed[i] = w[i] / 2 + 1 :: skip fi
  :: else
  fi
}
#define CHANGED(i) (b[i] == 0 && (word[i] != w[i] || HEADS[i] > taken[i] || fed[i] != f[i] || over[i] == w[i]))

proctype merger() {
  byte now, w[NP], f[NP], u[NP], h[NP], b[NP], over[NP]; bool out, in_order;
#ifdef LATE
  bool known;
#endif
  do
  :: done == NP && taken[0] == accepted[0] && taken[1] == accepted[1] -> break
  :: (taken[0] < HEADS[0] || taken[1] < HEADS[1]) ->
#ifdef NOW_LAST
     look(0); look(1); now = counter; heads();
#else
     now = counter;
#ifdef LATE
     known = listed;
#endif
     look(0); look(1); heads();
#endif
again:
     atomic { out = 0; bound(0); bound(1); hand_out(0, 1); hand_out(1, 0) };
     if
     :: out -> out = 0; heads(); goto again
     :: else ->
#ifdef GAPS
        atomic { pass_over(0); pass_over(1) };
#endif
        /* nothing is due: look again when there is something else to see */
        atomic {
          (h[0] == NONE && h[1] == NONE || CHANGED(0) || CHANGED(1) || (b[0] != 0 && b[1] != 0));
          now = 0; w[0] = 0; w[1] = 0; f[0] = 0; f[1] = 0; u[0] = 0; u[1] = 0; h[0] = 0; h[1] = 0; b[0] = 0; b[1] = 0
        }
     fi
  od
}

init { atomic {
#ifdef TSO
  buffered[0] = NONE; buffered[1] = NONE;
  run buffer(0); run buffer(1);
#endif
#ifdef FEED
  run feeder(0); run feeder(1);
#endif
  run publisher(0); run publisher(1);
  run merger()
} }
