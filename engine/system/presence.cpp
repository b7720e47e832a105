#include "engine/system/presence.hpp"

#include <climits>
#include <new>

#include "engine/system/clock.hpp"
#include "engine/system/fork.hpp"
#include "engine/system/thread_exit.hpp"

namespace ringmain::engine {

/// `depth` is written by the thread that has the record, also by its signal handlers: a handler
/// leaves it as it found it, so a load and a store need nothing between them.
class alignas(kLineBytes) PresenceRecord {
 public:
  explicit PresenceRecord(Presence& whose) noexcept : of(&whose) {}

  Presence* const of;
  Atomic<std::uint32_t> in_process{forks.load(std::memory_order_relaxed)};  // relaxed: as Born's
  Atomic<std::uint32_t> depth{0};
  Atomic<std::uint32_t> left{0};        // outermost entries that ended while a thread waited
  Atomic<std::uint32_t> taken{1};       // by a thread
  PresenceRecord* older = nullptr;      // in of's list
  PresenceRecord* next_mine = nullptr;  // of the thread that has it

  /// False: its thread was in the parent of this process, or it is the parent's depth that it
  /// shows.
  [[nodiscard]] bool is_of_this_process() const noexcept {
    // relaxed: written by the thread that has the record; a thread that waits read it after
    // `depth`.
    return in_process.load(std::memory_order_relaxed) == forks.load(std::memory_order_relaxed);
  }
};

namespace {

// All trivially destructible, so that a thread can still look after its records are gone.
thread_local PresenceRecord* mine __attribute__((tls_model("initial-exec"))) = nullptr;
// The record that was used last, where the barrier costs this side nothing: a record knows its
// presence, so that it is one word and no signal handler can come between two.
thread_local PresenceRecord* last __attribute__((tls_model("initial-exec"))) = nullptr;
// The thread's end has been: records are for one entry.
thread_local bool ended __attribute__((tls_model("initial-exec"))) = false;
// Set while records are taken or given back: signal handlers must not come in then.
thread_local bool changing __attribute__((tls_model("initial-exec"))) = false;

/// While it lives a signal handler that enters for the first time is refused.
class Changing {
 public:
  Changing() noexcept : before_(changing) {
    changing = true;
    order_for_handlers();
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
  ~Changing() {
    order_for_handlers();
    changing = before_;
  }

 private:
  const bool before_;  // a handler that enters again while its thread takes another record
};

PresenceRecord* mine_of(const Presence& presence) noexcept {
  for (PresenceRecord* r = mine; r != nullptr; r = r->next_mine) {
    if (r->of == &presence && r->is_of_this_process()) return r;
  }
  return nullptr;
}

std::uint32_t depth_of(const PresenceRecord& record) noexcept {
  return record.depth.load(std::memory_order_relaxed);  // relaxed: this thread writes it
}

}  // namespace

struct ThreadRecords {
  /// The thread ends. Nobody is inside any more, however the entry ended.
  static void end(void*) {
    const Changing now;
    ended = true;
    last = nullptr;
    for (PresenceRecord* r = mine; r != nullptr;) {
      PresenceRecord* const next = r->next_mine;
      mine = next;
      if (r->is_of_this_process()) {
        const bool was_inside = depth_of(*r) != 0;
        r->depth.store(0, std::memory_order_release);  // p.left
        asymmetric_fence_light_or_full();              // p.awaited
        if (was_inside) r->of->tell(*r);
        r->taken.store(0, std::memory_order_release);  // p.record
      }
      r = next;
    }
  }
  static void forget(PresenceRecord& record) noexcept {
    if (last == &record) last = nullptr;
    PresenceRecord** at = &mine;
    while (*at != &record) at = &(*at)->next_mine;
    *at = record.next_mine;
  }
};

namespace {
constinit ThreadExit at_thread_exit{&ThreadRecords::end};
}  // namespace

bool Presence::enter() noexcept {
  PresenceRecord* const record = last;
  if (record == nullptr || record->of != this || !record->is_of_this_process()) [[unlikely]]
    return enter_slowly();
  record->depth.store(depth_of(*record) + 1, std::memory_order_relaxed);  // relaxed: p.inside
  asymmetric_fence_light();                                               // p.inside
  return true;
}

void Presence::leave() noexcept {
  PresenceRecord* const record = last;
  if (record == nullptr || record->of != this || !record->is_of_this_process()) [[unlikely]] {
    PresenceRecord* const found = mine_of(*this);
    if (found != nullptr) leave_slowly(*found);
    return;
  }
  const std::uint32_t depth = depth_of(*record);
  if (depth != 1) [[unlikely]] {
    // 0: its parent was inside, and this is the child, which has entered and left since.
    if (depth != 0) record->depth.store(depth - 1, std::memory_order_relaxed);  // relaxed: inside
    return;
  }
  record->depth.store(0, std::memory_order_release);  // p.left: what was done inside is seen
  asymmetric_fence_light();                           // p.awaited
  // Relaxed: a thread that waits looks at `depth` after its barrier.
  if (awaited_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    tell(*record);
}

bool Presence::inside() const noexcept {
  const PresenceRecord* const record = mine_of(*this);
  return record != nullptr && depth_of(*record) != 0;
}

/// The first entry, one after the thread's end, one in a forked child, and all entries where both
/// sides must fence.
bool Presence::enter_slowly() noexcept {
  PresenceRecord* record = mine_of(*this);
  if (record != nullptr) {
    record->depth.store(depth_of(*record) + 1, std::memory_order_relaxed);  // relaxed: p.inside
  } else {
    if (changing) return false;  // this is a signal handler
    const Changing now;
    record = take();
    if (record == nullptr) return false;
    record->depth.store(1, std::memory_order_release);  // p.left: whose it is
    record->next_mine = mine;
    order_for_handlers();
    mine = record;
    // Without it the record is never given back; so it is for this entry.
    if (!ended && !at_thread_exit.ask(record)) ended = true;
  }
  // In the form with fences each entry comes here, and after the thread's end.
  if (!ended && !barrier_is_fence()) last = record;
  asymmetric_fence_light_or_full();  // p.inside
  return true;
}

void Presence::leave_slowly(PresenceRecord& record) noexcept {
  const std::uint32_t depth = depth_of(record);
  if (depth != 1) {
    if (depth != 0) record.depth.store(depth - 1, std::memory_order_relaxed);  // relaxed: inside
    return;
  }
  const Changing now;
  // First: a handler that interrupts what follows must not find a record that is given back.
  if (ended) ThreadRecords::forget(record);
  order_for_handlers();
  record.depth.store(0, std::memory_order_release);  // p.left
  asymmetric_fence_light_or_full();                  // p.awaited
  // Relaxed: as in leave().
  if (awaited_.load(std::memory_order_relaxed) != 0) tell(record);
  if (ended) record.taken.store(0, std::memory_order_release);  // p.record
}

/// Wakes threads that wait, of this process. A thread that comes back at once has still been
/// outside, which `left` says.
void Presence::tell(PresenceRecord& record) noexcept {
  if (awaited_.load(std::memory_order_relaxed) >> 32 != forks.load(std::memory_order_relaxed))
    return;                                             // relaxed: forks leave one thread
  record.left.fetch_add(1, std::memory_order_release);  // p.left
  key_.fetch_add(1, std::memory_order_release);         // p.left
  futex_wake(key_, INT_MAX);
}

/// A record for this thread; nullptr: no memory.
PresenceRecord* Presence::take() noexcept {
  const std::uint32_t here = forks.load(std::memory_order_relaxed);  // relaxed: as Born's
  PresenceRecord* r = records_.load(std::memory_order_acquire);      // e.listed
  for (; r != nullptr; r = r->older) {
    std::uint32_t free = 0;
    // Relaxed: most are taken.
    if (r->taken.load(std::memory_order_relaxed) != 0) continue;
    if (!r->taken.compare_exchange_strong(free, 1, std::memory_order_acq_rel))
      continue;                                            // p.record
    r->in_process.store(here, std::memory_order_relaxed);  // relaxed: p.inside orders it
    return r;
  }
  auto* const made = new (std::nothrow) PresenceRecord(*this);
  if (made == nullptr) return nullptr;
  made->older = records_.load(std::memory_order_relaxed);  // relaxed: the exchange looks
  while (
      !records_.compare_exchange_weak(made->older, made, std::memory_order_acq_rel)) {  // e.listed
  }
  return made;
}

void Presence::count_waiting(int by) noexcept {
  const auto here = std::uint64_t{forks.load(std::memory_order_relaxed)} << 32;  // relaxed: Born's
  std::uint64_t now = awaited_.load(std::memory_order_relaxed);  // relaxed: the exchange looks
  std::uint64_t next = 0;
  do {
    const std::uint64_t threads = now >> 32 == here >> 32 ? now & 0xffffffff : 0;
    next = threads + static_cast<std::uint64_t>(by);
    if (next != 0) next |= here;
  } while (!awaited_.compare_exchange_weak(now, next, std::memory_order_relaxed));  // p.awaited
}

bool Presence::has_left(PresenceRecord& record, const Deadline& deadline) noexcept {
  const std::uint32_t before = record.left.load(std::memory_order_acquire);  // p.left
  for (;;) {
    const std::uint32_t key = key_.load(std::memory_order_acquire);          // p.left
    if (record.depth.load(std::memory_order_acquire) == 0) return true;      // p.left
    if (record.left.load(std::memory_order_acquire) != before) return true;  // p.left
    if (!record.is_of_this_process()) return true;
    const std::int64_t left_ns = deadline.left_ns();
    if (left_ns == 0) return false;
    (void)futex_wait(key_, key, left_ns);
  }
}

Presence::Waited Presence::wait_until_none(std::int64_t limit_ns) noexcept {
  // Or a signal handler interrupts an entry or its end, where its record is not in `mine`.
  if (inside() || changing) return Waited::itself;
  const Deadline deadline(limit_ns);
  count_waiting(+1);
  asymmetric_fence_heavy();  // p.inside, p.awaited
  bool all = true;
  PresenceRecord* record = records_.load(std::memory_order_acquire);  // e.listed
  for (; all && record != nullptr; record = record->older) all = has_left(*record, deadline);
  count_waiting(-1);
  return all ? Waited::none_inside : Waited::timeout;
}

}  // namespace ringmain::engine
