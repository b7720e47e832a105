// How does one thread play all threads of a scenario, in an order that a seed decides?
//
// Each thread of the scenario is a fiber with a stack and thread-locals of its own. Before each
// atomic access, futex call, lock and thread start the scheduler may go on with another one:
// whichever it likes (random walk), or the one of the highest priority, where priorities are drawn
// at the start and lowered at d - 1 points of the run (PCT: Burckhardt, Kothari, Musuvathi,
// Nagarakatte, ASPLOS 2010: a bug of depth d is found with at least 1/(n k^(d-1))).
//
// Stores that are not seq_cst wait in their fiber's buffer, as they do in a processor, until the
// scheduler writes one out, or until that fiber's next read-modify-write, lock, system call or end,
// or anybody's asymmetric_fence_heavy(). A release store stays after all before it, a relaxed one
// only after those to its own word. Loads look into the own buffer first. Time is virtual, and
// jumps to the next deadline when everybody sleeps; if nobody has one, that is a deadlock.
//
// A signal handler of a fiber may run before each of its accesses, one in another, while that
// fiber is InHandlersReach.
//
// Not modelled: loads that are done late, races of plain accesses (ThreadSanitizer's business),
// what the compiler may reorder, and the inside of moodycamel's queue, whose calls are one step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace ringmain::interleave {

/// Where in the engine an access is written; for the story of a failed schedule.
struct Where {
  const char* function;
  int line;
};
#define RINGMAIN_WHERE \
  ::ringmain::interleave::Where where = {__builtin_FUNCTION(), __builtin_LINE()}

/// What a search may vary; all of a schedule follows from these.
struct Schedule {
  std::uint64_t seed = 1;
  int fault = -1;      // the planted one that is switched on, by its number; -1: none
  bool story = false;  // print every step
};

struct Outcome {
  bool holds = true;
  char what[240] = {};  // if not, the first thing that was wrong
  std::uint64_t steps = 0;
};

/// Plays one schedule of `scenario`, which runs as the first fiber and may start std::threads.
Outcome play(const Schedule& schedule, void (*scenario)());

/// In a scenario: ends the schedule as failed unless `holds`.
void expect(bool holds, const char* what);
[[noreturn]] void fail(const char* what);
/// In a scenario: one of 0 … n - 1, by the seed.
std::uint64_t choose(std::uint64_t n);
/// Is this planted fault switched on? A schedule has at most one.
[[nodiscard]] bool planted(int fault) noexcept;
/// The form without membarrier: both sides of a store-load edge fence. By the seed.
[[nodiscard]] bool fence_form() noexcept;
/// The form where a word is changed by one instruction, which no signal handler divides. By the
/// seed.
[[nodiscard]] bool one_instruction() noexcept;
/// While it lives `handler` interrupts this fiber, by the seed, one in another to a depth of two.
class InHandlersReach {
 public:
  explicit InHandlersReach(std::function<void()> handler);
  InHandlersReach(const InHandlersReach&) = delete;
  InHandlersReach& operator=(const InHandlersReach&) = delete;
  ~InHandlersReach();

 private:
  std::function<void()> handler_;
};
/// Blocks of memory that the scenario has taken and not given back.
[[nodiscard]] std::size_t live_blocks() noexcept;
/// In a scenario: so many of them are never given back, and no leak.
void keep_blocks(std::size_t count) noexcept;
/// In a scenario: does its first thread sleep?
[[nodiscard]] bool first_sleeps() noexcept;
/// In a scenario: the system keeps nothing for threads under keys.
void refuse_keys() noexcept;
/// In a scenario: deletes the keys of thread-specific data that have this destructor. How many.
std::size_t delete_keys(void (*destroy)(void*)) noexcept;

// --- for atomics.hpp and interposed.cpp: what the fibers do ---

enum class Order : std::uint8_t { relaxed, release, seq_cst };

/// Is the caller a fiber?
[[nodiscard]] bool inside() noexcept;
std::uint64_t load(const void* at, unsigned bytes, Where where);
void store(void* at, unsigned bytes, std::uint64_t value, Order order, Where where);
/// One instruction that is not locked: `change` of what a load gives is stored. Returns what it
/// was.
std::uint64_t change(std::uint64_t* at, std::uint64_t (*change)(std::uint64_t), Where where);
/// A read-modify-write comes: the buffer is written out, and nobody comes between.
void before_rmw(void* at, const char* what, Where where);
/// What stores of this fiber wait is written out; everybody's, if `all`.
void drain_buffer(bool all, const char* what, Where where);
/// A step in which nothing is accessed. `yield`: others first.
void step(const char* what, bool yield, Where where);
/// Sleeps on `on` until wake(on), or the virtual clock passes `limit_ns` from now. False: time.
bool sleep_on(const void* on, std::int64_t limit_ns, const char* what, Where where);
void wake(const void* on, std::uint64_t count);
std::int64_t virtual_now_ns() noexcept;

/// In a scenario: the system gives so many threads more.
void allow_threads(std::uint64_t threads) noexcept;
/// A new fiber; returns its number, 1 and up; 0 when the system gives no more.
std::uint64_t start_fiber(void* (*routine)(void*), void* argument);
void join_fiber(std::uint64_t fiber);
void at_fiber_exit(void (*destroy)(void*), void* object);

/// In a scenario: what is freed from here on is the next block of its size, as it often is outside.
void reuse_memory() noexcept;

/// Memory of a schedule: all of it is forgotten at the next one, so that a failed schedule needs no
/// unwinding; what was freed is not given out again before, unless by reuse_memory(), and touching
/// it fails the schedule.
void* take_memory(std::size_t bytes, std::size_t alignment) noexcept;
/// False: it is not from here.
bool give_memory(void* memory) noexcept;

}  // namespace ringmain::interleave
