// One lane, one channel, its workers and stop(): lane_protocol.md as it would be written.
//
// A template over an atomics policy P, so that the same source runs under Relacy (lane_relacy.cpp)
// and on real threads. Every access names its memory order and its site: P::order(site, order) may
// weaken one, which is a mutant. l.closing, l.attended, l.waiting are the store-load edges: nothing
// in the membarrier form, a seq_cst fence in the fence form; asymmetric_fence_heavy() is the other
// side of each.
#pragma once

#define LOAD(x, o, site) P::load(x, P::order(#site, P::o), HERE)
#define STORE(x, v, o, site) P::store(x, v, P::order(#site, P::o), HERE)
#define SWAP(x, v, o, site) P::exchange(x, v, P::order(#site, P::o), HERE)
#define ADD(x, v, o, site) P::fetch_add(x, v, P::order(#site, P::o), HERE)

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
  Plain slot[kCapacity], publisher;          // the queue: a ring; the thread that publishes
  Word live;                                 // lane in use
  Word consumed;                             // the owner's line
  Word signals, passed, idle, key[2], quit;  // the worker group's lines
  Word waiters, done_key;

  struct Publishing {
    int published = 0, seen = 0, woke = -1;
  };

  void wake_one(int& woke) {
    int i = LOAD(idle, seq_cst, IDLE);  // s.signal
    int parked = i & 3;
    if (i % kEpoch / kSearching || !parked || i / kEpoch == woke) return;
    woke = i / kEpoch;
    int w = parked & 1 ? 0 : 1;
    ADD(key[w], 1, release, MOVE_KEY);
    P::futex_wake(key[w], 1, HERE);
  }

  Result publish(Publishing& own, int event) {
    if (LOAD(mode, relaxed, MODE_EARLY) != open) return refused;
    if (own.published - own.seen >= kCapacity) {
      own.seen =
          LOAD(consumed, acquire, ROOM);  // e.consumed: the callbacks are over: the slot is free
      if (own.published - own.seen >= kCapacity) return full;
    }
    STORE(lane, 2 * own.published + 1, release,
          ANNOUNCE);                    // e.published: a thread that sees busy sees the events
    P::light_fence("l.closing", HERE);  // before the second look at mode
    if (LOAD(mode, relaxed, MODE_CHECK) != open) {
      STORE(lane, 2 * own.published, release, UNDO);  // e.published
      return refused;
    }
    P::set(slot[own.published % kCapacity], event, HERE);
    STORE(lane, 2 * ++own.published, release, COMMIT);  // e.published
    P::light_fence("l.attended", HERE);                 // before the look at leased
    if (LOAD(leased, relaxed, LEASED)) return accepted;
    if (!LOAD(signals, seq_cst, SIGNALLED))
      SWAP(signals, 1, seq_cst, SIGNAL);  // s.signal: fetch_or(bit)
    wake_one(own.woke);
    return accepted;
  }

  // --- worker ---
  struct Draining {
    bool held = false, searching = false;
    int consumed = 0, woke = -1;
  };
  void hold(Draining& own) {
    own.held = true;
    own.consumed = LOAD(consumed, relaxed, OWN_CONSUMED);
  }
  void take_lease(Draining& own) {
    if (!SWAP(leased, 1, seq_cst, TAKE_LEASE))
      hold(own);  // e.leased: we see all the last owner did; s.signal
  }
  void adopt(Draining& own) {
    if (!own.held && LOAD(passed, relaxed, SEE_PASSED) && SWAP(passed, 0, acquire, TAKE_PASSED)) {
      hold(own);  // e.passed
    }
    if (!own.held && LOAD(signals, relaxed, SEE_SIGNAL) && SWAP(signals, 0, seq_cst, TAKE_SIGNAL)) {
      take_lease(own);  // s.signal
    }
  }
  void stop_searching(Draining& own) {
    if (!own.searching) return;
    ADD(idle, kEpoch - kSearching, seq_cst, STOP_SEARCHING);  // s.signal
    own.searching = false;
    if (LOAD(passed, seq_cst, LEFT_PASSED) || LOAD(signals, seq_cst, LEFT_SIGNAL)) {  // s.signal
      wake_one(own.woke);
    }
  }
  template <class Callback>
  void serve(Draining& own, bool passes, Callback& callback) {
    stop_searching(own);
    callback(own.consumed, slot[own.consumed % kCapacity], publisher);
    STORE(consumed, ++own.consumed, release, CONSUMED);  // e.consumed
    P::light_fence("l.waiting", HERE);                   // before the look at waiters
    if (LOAD(waiters, relaxed, WAITERS)) {
      ADD(done_key, 1, release, MOVE_DONE);
      P::futex_wake(done_key, 9, HERE);
    }
    if (passes) {  // end of quantum
      own.held = false;
      SWAP(passed, 1, seq_cst, PASS);  // e.passed, s.signal: fetch_or(bit)
      wake_one(own.woke);
    }
  }
  void park(Draining& own, int w) {
    bool given = own.held;
    if (own.held) STORE(leased, 0, release, GIVE_LEASE);  // e.leased
    own.held = false;
    int k = LOAD(key[w], relaxed, KEY);
    ADD(idle, kEpoch + (kParked << w) - (own.searching ? +kSearching : 0), seq_cst,
        PARK);             // s.signal
    P::heavy_fence(HERE);  // h.rounds: leased before the second look at the lanes
    if (given && (LOAD(lane, relaxed, RECHECK) >> 1) - LOAD(consumed, relaxed, RECHECK) > 0) {
      take_lease(own);
    }
    if (!own.held && !LOAD(passed, seq_cst, RECHECK_PASSED) &&
        !LOAD(signals, seq_cst, RECHECK_SIGNAL) && !LOAD(quit, acquire, QUIT)) {  // s.signal
      P::futex_wait(key[w], k, HERE);
    }
    ADD(idle, kEpoch - (kParked << w) + kSearching, seq_cst, UNPARK);  // s.signal
    own.searching = true;
  }
  template <class Callback>
  void work(int w, bool passes, Callback callback) {
    Draining own;
    for (;;) {
      adopt(own);
      if (own.held && (LOAD(lane, acquire, POLL) >> 1) - own.consumed > 0) {  // e.published
        serve(own, passes, callback);
      } else if (LOAD(quit, acquire, QUIT)) {
        return;
      } else {
        park(own, w);
      }
    }
  }

  // --- flush and stop ---
  void await(int target) {
    for (;;) {
      int k = LOAD(done_key, acquire, DONE_KEY);
      if (LOAD(consumed, acquire, DONE) - target >= 0) return;  // e.consumed
      P::futex_wait(done_key, k, HERE);
    }
  }
  void help() {
    int woke = -1;
    if (LOAD(leased, relaxed, HELP_LEASED)) return;
    SWAP(signals, 1, seq_cst, HELP);  // s.signal
    wake_one(woke);
  }
  void flush() {
    ADD(waiters, 1, seq_cst, WAIT);
    P::heavy_fence(HERE);                            // h.asked
    int target = LOAD(lane, acquire, FLUSHED) >> 1;  // e.published
    help();
    await(target);
    ADD(waiters, -1, relaxed, UNWAIT);
  }
  void stop() {  // the workers return afterwards
    STORE(mode, closing, relaxed, CLOSE);
    ADD(waiters, 1, seq_cst, WAIT);
    P::heavy_fence(HERE);  // H1, h.asked
    int word;
    while ((word = LOAD(lane, acquire, BUSY)) & 1) P::pause(HERE);  // e.published
    help();
    await(word >> 1);
    ADD(waiters, -1, relaxed, UNWAIT);
  }
  void dismiss() {
    STORE(quit, 1, release, DISMISS);
    for (Word& k : key) {
      ADD(k, 1, release, MOVE_KEY);
      P::futex_wake(k, 9, HERE);
    }
  }

  // --- lanes come back ---
  bool acquire_lane(Publishing& own, int who) {
    if (LOAD(live, relaxed, LIVE_LOOK) || SWAP(live, 1, acquire, LIVE_TAKE))
      return false;  // e.lane_free
    own.published = LOAD(lane, relaxed, TAKEN_LANE) >> 1;
    own.seen = LOAD(consumed, acquire, DRAINED);  // e.consumed
    if (own.published != own.seen) {
      STORE(live, 0, release, LIVE_RETURN);  // e.lane_free
      return false;
    }
    P::set(publisher, who, HERE);
    return true;
  }
  void release_lane() {
    STORE(live, 0, release,
          LIVE_GIVE);  // e.lane_free: the next thread continues where this one stopped
  }
};
