// One lane, one channel, its workers and stop(): lane_protocol.md as it would be written.
//
// A template over an atomics policy P, so that the same source runs under Relacy (lane_relacy.cpp)
// and on real threads. Every access names its memory order by a macro O_<SITE>;
// -DO_<SITE>=relaxed weakens one site: that is a mutant. L1..L3 are the store-load edges: nothing
// in the membarrier form, a seq_cst fence in the fence form; heavy() is the other side of each.
#pragma once

#ifndef O_MODE_EARLY
#define O_MODE_EARLY relaxed
#endif
#ifndef O_ROOM
#define O_ROOM acquire  // E1: the slot may be written again, the callbacks are over
#endif
#ifndef O_ANNOUNCE
#define O_ANNOUNCE release  // E2: a reader of the busy word sees the published events too
#endif
#ifndef O_MODE_CHECK
#define O_MODE_CHECK relaxed
#endif
#ifndef O_UNDO
#define O_UNDO release  // E2
#endif
#ifndef O_COMMIT
#define O_COMMIT release  // E2
#endif
#ifndef O_LEASED
#define O_LEASED relaxed
#endif
#ifndef O_SIGNALLED
#define O_SIGNALLED seq_cst  // S
#endif
#ifndef O_SIGNAL
#define O_SIGNAL seq_cst  // S
#endif
#ifndef O_IDLE
#define O_IDLE seq_cst  // S
#endif
#ifndef O_TAKE_SIGNAL
#define O_TAKE_SIGNAL seq_cst  // S
#endif
#ifndef O_TAKE_LEASE
#define O_TAKE_LEASE seq_cst  // E3: the next owner sees all that the last one did; S
#endif
#ifndef O_GIVE_LEASE
#define O_GIVE_LEASE release  // E3
#endif
#ifndef O_PASS
#define O_PASS seq_cst  // E4, S
#endif
#ifndef O_TAKE_PASSED
#define O_TAKE_PASSED acquire  // E4
#endif
#ifndef O_OWN_CONSUMED
#define O_OWN_CONSUMED relaxed
#endif
#ifndef O_POLL
#define O_POLL acquire  // E2
#endif
#ifndef O_CONSUMED
#define O_CONSUMED release  // E1
#endif
#ifndef O_WAITERS
#define O_WAITERS relaxed
#endif
#ifndef O_KEY
#define O_KEY relaxed
#endif
#ifndef O_PARK
#define O_PARK seq_cst  // S
#endif
#ifndef O_RECHECK
#define O_RECHECK relaxed
#endif
#ifndef O_RECHECK_SETS
#define O_RECHECK_SETS seq_cst  // S
#endif
#ifndef O_DONE
#define O_DONE acquire  // E1
#endif
#ifndef O_BUSY
#define O_BUSY acquire  // E2
#endif
#ifndef O_CLOSE
#define O_CLOSE relaxed
#endif
#ifndef O_LIVE_GIVE
#define O_LIVE_GIVE release  // E5: the next thread continues where the last one stopped
#endif
#ifndef O_LIVE_TAKE
#define O_LIVE_TAKE acquire  // E5
#endif
#ifndef O_DRAINED
#define O_DRAINED acquire  // E1
#endif

#define LOAD(x, o) P::load(x, P::o, HERE)
#define STORE(x, v, o) P::store(x, v, P::o, HERE)
#define SWAP(x, v, o) P::exchange(x, v, P::o, HERE)
#define ADD(x, v, o) P::fetch_add(x, v, P::o, HERE)

template <class P, int kCapacity>
struct Core {
  using Word = typename P::Word;    // std::atomic<int> or rl::atomic<int>
  using Plain = typename P::Plain;  // int or rl::var<int>
  enum { open = 0, closing = 1 };
  // idle: epoch, searchers, one bit per worker
  enum { kParked = 1, kSearching = 16, kEpoch = 256 };
  enum Result { accepted, refused, full };

  Word mode, leased;                         // the channel's line: publishers read it
  Word lane;                                 // 2 * published + busy; the publisher's line
  Plain slot[kCapacity], publisher;          // the queue: a ring; who publishes on this lane
  Word live;                                 // lane in use
  Word consumed;                             // the owner's line
  Word signals, passed, idle, key[2], quit;  // the worker group's lines
  Word waiters, done_key;

  struct Publishing {
    int published = 0, seen = 0, woke = -1;
  };

  void wake_one(int& woke) {
    int i = LOAD(idle, O_IDLE);
    int parked = i & 3;
    if (i % kEpoch / kSearching || !parked || i / kEpoch == woke) return;
    woke = i / kEpoch;
    int w = parked & 1 ? 0 : 1;
    ADD(key[w], 1, release);
    P::futex_wake(key[w], 1, HERE);
  }

  Result publish(Publishing& own, int event) {
    if (LOAD(mode, O_MODE_EARLY) != open) return refused;
    if (own.published - own.seen >= kCapacity) {
      own.seen = LOAD(consumed, O_ROOM);
      if (own.published - own.seen >= kCapacity) return full;
    }
    STORE(lane, 2 * own.published + 1, O_ANNOUNCE);
#ifndef NO_L1
    P::light(HERE);  // L1: announce before the second look at mode
#endif
    if (LOAD(mode, O_MODE_CHECK) != open) {
      STORE(lane, 2 * own.published, O_UNDO);
      return refused;
    }
    P::set(slot[own.published % kCapacity], event, HERE);
    STORE(lane, 2 * ++own.published, O_COMMIT);
#ifndef NO_L2
    P::light(HERE);  // L2: commit before the look at leased
#endif
    if (LOAD(leased, O_LEASED)) return accepted;
    if (!LOAD(signals, O_SIGNALLED)) SWAP(signals, 1, O_SIGNAL);  // fetch_or(bit)
    wake_one(own.woke);
    return accepted;
  }

  // --- worker ---
  struct Draining {
    bool held = false, searching = false;
    int consumed = 0, woke = -1;
  };
  bool take_lease(Draining& own) {
    if (SWAP(leased, 1, O_TAKE_LEASE)) return false;
    own.held = true;
    own.consumed = LOAD(consumed, O_OWN_CONSUMED);
    return true;
  }
  template <class Callback>
  void work(int w, bool passes, Callback callback) {
    Draining own;
    for (;;) {
      if (!own.held && LOAD(passed, relaxed) && SWAP(passed, 0, O_TAKE_PASSED)) {
        own.held = true;
        own.consumed = LOAD(consumed, O_OWN_CONSUMED);
      }
      if (!own.held && LOAD(signals, relaxed) && SWAP(signals, 0, O_TAKE_SIGNAL)) take_lease(own);
      if (own.held && (LOAD(lane, O_POLL) >> 1) - own.consumed > 0) {
        if (own.searching) {
          ADD(idle, kEpoch - kSearching, O_PARK);
          own.searching = false;
          if (LOAD(passed, O_RECHECK_SETS) || LOAD(signals, O_RECHECK_SETS)) wake_one(own.woke);
        }
        callback(own.consumed, slot[own.consumed % kCapacity], publisher);
        STORE(consumed, ++own.consumed, O_CONSUMED);
#ifndef NO_L3
        P::light(HERE);  // L3: consumed before the look at waiters
#endif
        if (LOAD(waiters, O_WAITERS)) {
          ADD(done_key, 1, release);
          P::futex_wake(done_key, 9, HERE);
        }
        if (passes) {  // end of quantum
          own.held = false;
          SWAP(passed, 1, O_PASS);  // fetch_or(bit)
          wake_one(own.woke);
        }
        continue;
      }
      if (LOAD(quit, acquire)) return;
      bool given = own.held;
      if (own.held) STORE(leased, 0, O_GIVE_LEASE);
      own.held = false;
      int k = LOAD(key[w], O_KEY);
      ADD(idle, kEpoch + (kParked << w) - (own.searching ? +kSearching : 0), O_PARK);
      P::heavy(HERE);  // H2: leased before the second look at the lanes
      if (given && (LOAD(lane, O_RECHECK) >> 1) - LOAD(consumed, O_RECHECK) > 0) take_lease(own);
      if (!own.held && !LOAD(passed, O_RECHECK_SETS) && !LOAD(signals, O_RECHECK_SETS) &&
          !LOAD(quit, acquire))
        P::futex_wait(key[w], k, HERE);
      ADD(idle, kEpoch - (kParked << w) + kSearching, O_PARK);
      own.searching = true;
    }
  }

  // --- flush and stop ---
  void await(int target) {
    for (;;) {
      int k = LOAD(done_key, acquire);
      if (LOAD(consumed, O_DONE) - target >= 0) return;
      P::futex_wait(done_key, k, HERE);
    }
  }
  void help() {
    int woke = -1;
    if (LOAD(leased, relaxed)) return;
    SWAP(signals, 1, seq_cst);
    wake_one(woke);
  }
  void flush() {
    ADD(waiters, 1, seq_cst);
    P::heavy(HERE);  // H3
    int target = LOAD(lane, O_BUSY) >> 1;
    help();
    await(target);
    ADD(waiters, -1, relaxed);
  }
  void stop() {  // the workers return afterwards
    STORE(mode, closing, O_CLOSE);
    ADD(waiters, 1, seq_cst);
    P::heavy(HERE);  // H1, H3
    int word;
    while ((word = LOAD(lane, O_BUSY)) & 1) P::pause(HERE);
    help();
    await(word >> 1);
    ADD(waiters, -1, relaxed);
  }
  void dismiss() {
    STORE(quit, 1, release);
    for (Word& k : key) {
      ADD(k, 1, release);
      P::futex_wake(k, 9, HERE);
    }
  }

  // --- lanes come back ---
  bool acquire_lane(Publishing& own, int who) {
    if (LOAD(live, relaxed) || SWAP(live, 1, O_LIVE_TAKE)) return false;
    own.published = LOAD(lane, relaxed) >> 1;
    own.seen = LOAD(consumed, O_DRAINED);
    if (own.published != own.seen) {
      STORE(live, 0, release);
      return false;
    }
    P::set(publisher, who, HERE);
    return true;
  }
  void release_lane() {
    STORE(live, 0, O_LIVE_GIVE);
  }
};
