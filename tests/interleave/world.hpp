// The state of a schedule: its fibers, whose turn it is, what the seed has drawn, what time it is.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/interleave/fibers.hpp"
#include "tests/interleave/scheduler.hpp"
#include "tests/stress/oracle.hpp"

namespace ringmain::interleave {

enum : std::size_t { kFibersMax = 24 };

/// How the next fiber is chosen in this schedule.
struct Strategy {
  bool pct = false;
  std::uint64_t switch_one_in = 2;            // random walk
  std::array<std::uint64_t, 3> lowered_at{};  // PCT: the steps at which a priority is lowered
  std::uint64_t flush_one_in = 0;  // a waiting store is written out; 0: stores never wait
};

class World {
 public:
  Outcome play(const Schedule& schedule, void (*scenario)());
  [[noreturn]] void end(const char* what);
  [[noreturn]] void run_fiber();

  [[nodiscard]] bool in_fiber() const noexcept { return in_fiber_; }
  void set_in_fiber(bool in) noexcept { in_fiber_ = in; }
  [[nodiscard]] const Schedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] bool fence_form() const noexcept { return fence_form_; }
  std::uint64_t below(std::uint64_t n) { return random_.below(n); }

  void step(const char* what, bool yield, Where where);
  void check(const void* at);
  std::uint64_t load(const void* at, unsigned bytes) const;
  void store(void* at, unsigned bytes, std::uint64_t value, Order order);
  void drain_buffer(Fiber& fiber);
  void drain_all() {
    for (std::size_t i = 0; i < count_; ++i) drain_buffer(fibers_[i]);
  }
  bool sleep_on(const void* on, std::int64_t limit_ns, const char* what, Where where);
  void wake(const void* on, std::uint64_t count);
  std::int64_t look_at_clock() noexcept { return now_ns_ += 20; }
  std::uint64_t start(void* (*routine)(void*), void* argument);
  void allow_threads(std::uint64_t threads) noexcept { threads_allowed_ = threads; }
  [[nodiscard]] Fiber& fiber(std::uint64_t i) noexcept { return fibers_[i]; }
  [[nodiscard]] Fiber& current() noexcept { return fibers_[current_]; }

 private:
  void draw_strategy();
  void write_out_one(Fiber& fiber);
  void write_out_by_chance(bool all);
  void wake_the_late();
  std::size_t next(bool yield);
  std::size_t ready_of_highest_priority() const;
  void go_to(std::size_t next);
  void switch_away(bool yield) { go_to(next(yield)); }
  [[noreturn]] void deadlock();

  Schedule schedule_;
  Outcome outcome_;
  stress::Random random_{1};
  Strategy strategy_;
  bool fence_form_ = false;
  bool in_fiber_ = false;
  std::array<Fiber, kFibersMax> fibers_;
  std::size_t count_ = 0, current_ = 0;
  std::uint64_t threads_allowed_ = 0;
  std::int64_t now_ns_ = 0, lowest_ = 0;
  ucontext_t outside_{};
  ThreadImage outside_image_;
};

extern World world;

/// The scheduler's own code: what it allocates is not the scenario's.
class Outside {
 public:
  Outside() { world.set_in_fiber(false); }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside() { world.set_in_fiber(true); }
};

}  // namespace ringmain::interleave
