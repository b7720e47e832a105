#include "tests/interleave/world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/interleave/memory.hpp"

namespace ringmain::interleave {
namespace {

enum : std::uint64_t { kStepsMax = 40'000 };
// The housekeeper wakes every second: if this is all that happens for so long, the others sleep.
enum : std::int64_t { kStartNs = 1'000'000'000, kNobodyMovesNs = 21 * kStartNs };

void* play_scenario(void* scenario) {
  (*reinterpret_cast<void (**)()>(scenario))();
  return nullptr;
}

}  // namespace

World world;

void World::draw_strategy() {
  strategy_ = {};
  strategy_.pct = below(2) == 0;
  if (strategy_.pct) {
    const std::uint64_t span = std::uint64_t{64} << (2 * below(3));
    const std::uint64_t points = 1 + below(3);
    for (std::uint64_t i = 0; i < points; ++i) strategy_.lowered_at[i] = 1 + below(span);
  } else {
    strategy_.switch_one_in = std::uint64_t{2} << below(4);
  }
  strategy_.flush_one_in = std::array<std::uint64_t, 4>{0, 4, 64, 4096}[below(4)];
  fence_form_ = below(4) == 0;
}

Outcome World::play(const Schedule& schedule, void (*scenario)()) {
  schedule_ = schedule;
  random_ = stress::Random(schedule.seed);
  outcome_ = {};
  draw_strategy();
  forget_memory();
  threads_allowed_ = kFibersMax;
  now_ns_ = kStartNs;
  count_ = current_ = 0;
  lowest_ = 0;
  (void)start(&play_scenario, static_cast<void*>(&scenario));
  outside_image_.save();
  current().image.load();
  in_fiber_ = true;
  ::swapcontext(&outside_, &current().context);
  outside_image_.load();
  return outcome_;
}

/// Leaves the fibers where they are: their stacks are used again, their memory is forgotten.
void World::end(const char* what) {
  in_fiber_ = false;
  if (what != nullptr) {
    outcome_.holds = false;
    std::snprintf(outcome_.what, sizeof outcome_.what, "%s", what);
  }
  if (schedule_.story && what != nullptr) std::fprintf(stderr, "  => %s\n", what);
  ::setcontext(&outside_);
  std::abort();
}

void World::run_fiber() {
  in_fiber_ = true;
  current().routine(current().argument);
  in_fiber_ = false;
  auto& ends = current().at_exit;
  while (!ends.empty()) {
    const auto [destroy, object] = ends.back();
    ends.pop_back();
    in_fiber_ = true;
    destroy(object);
    in_fiber_ = false;
  }
  step("end", false, {"thread", 0});  // the last stores may still be on their way
  drain_buffer(current());
  current().state = Fiber::State::done;
  if (current_ == 0) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (fibers_[i].state != Fiber::State::done) end("a thread outlives the scenario");
    }
    end(live_memory() == 0 ? nullptr : "memory is leaked");
  }
  wake(&current(), ~std::uint64_t{0});
  switch_away(false);
  std::abort();  // nobody goes on with a fiber that is done
}

std::uint64_t World::start(void* (*routine)(void*), void* argument) {
  if (threads_allowed_ == 0) return 0;
  --threads_allowed_;
  if (count_ == kFibersMax) end("the scenario starts too many threads");
  Fiber& made = fibers_[count_];
  made.prepare([] { world.run_fiber(); });
  made.routine = routine;
  made.argument = argument;
  made.priority = static_cast<std::int64_t>(1000 + below(1'000'000));
  return count_++;
}

// --- which fiber is next ---

std::size_t World::ready_of_highest_priority() const {
  std::size_t best = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    if (fibers_[i].state != Fiber::State::ready) continue;
    if (best == count_ || fibers_[i].priority > fibers_[best].priority) best = i;
  }
  return best;
}

void World::wake_the_late() {
  for (std::size_t i = 0; i < count_; ++i) {
    Fiber& f = fibers_[i];
    if (f.state != Fiber::State::asleep || f.until_ns < 0 || f.until_ns > now_ns_) continue;
    f.state = Fiber::State::ready;
    f.timed_out = true;
  }
}

std::size_t World::next(bool yield) {
  wake_the_late();
  std::array<std::size_t, kFibersMax> ready{};
  std::size_t n = 0;
  std::int64_t soonest = -1;
  for (std::size_t i = 0; i < count_; ++i) {
    const Fiber& f = fibers_[i];
    if (f.state == Fiber::State::ready && !(yield && i == current_)) ready[n++] = i;
    if (f.state == Fiber::State::asleep && f.until_ns >= 0 && (soonest < 0 || f.until_ns < soonest))
      soonest = f.until_ns;
  }
  if (n == 0) {
    if (yield && current().state == Fiber::State::ready) {
      if (soonest >= 0) now_ns_ = std::max(now_ns_, soonest);  // it only waits for time to pass
      wake_the_late();
      return current_;
    }
    if (soonest < 0 || now_ns_ > kNobodyMovesNs) deadlock();
    now_ns_ = std::max(now_ns_, soonest);
    return next(yield);
  }
  if (strategy_.pct) return ready_of_highest_priority();
  const bool stay =
      !yield && current().state == Fiber::State::ready && below(strategy_.switch_one_in) != 0;
  return stay ? current_ : ready[below(n)];
}

void World::go_to(std::size_t next) {
  if (next == current_) return;
  Fiber& from = current();
  current_ = next;
  from.image.save();
  fibers_[next].image.load();
  ::swapcontext(&from.context, &fibers_[next].context);
  in_fiber_ = false;  // a fiber that is new starts inside
}

void World::deadlock() {
  char words[240];
  int at = std::snprintf(words, sizeof words, "everybody sleeps for ever:");
  for (std::size_t i = 0; i < count_ && at < int{sizeof words}; ++i) {
    const Fiber& f = fibers_[i];
    if (f.state != Fiber::State::asleep) continue;
    const int shown = static_cast<int>(std::strcspn(f.function, "<"));  // not what a template is of
    at += std::snprintf(words + at, sizeof words - static_cast<std::size_t>(at), " %zu in %.*s,", i,
                        shown, f.function);
  }
  end(words);
}

void World::step(const char* what, bool yield, Where where) {
  Fiber& me = current();
  me.doing = what;
  me.function = where.function;
  me.line = where.line;
  if (++outcome_.steps > kStepsMax) end("it does not come to an end");
  write_out_by_chance(yield);
  if (strategy_.pct) {
    for (std::uint64_t& at : strategy_.lowered_at) {
      if (at == outcome_.steps) me.priority = static_cast<std::int64_t>(below(100));
    }
    if (yield) me.priority = --lowest_;
  }
  switch_away(yield);
  if (schedule_.story)
    std::fprintf(stderr, "%5llu %2zu %-16s %s:%d\n",
                 static_cast<unsigned long long>(outcome_.steps), current_, what, where.function,
                 where.line);
}

// --- memory and buffers ---

void World::check(const void* at) {
  if (!is_freed(at)) return;
  char words[200];
  std::snprintf(words, sizeof words, "freed memory is touched, in %s:%d", current().function,
                current().line);
  end(words);
}

std::uint64_t World::load(const void* at, unsigned bytes) const {
  const auto& buffer = fibers_[current_].buffer;
  for (auto w = buffer.rbegin(); w != buffer.rend(); ++w) {
    if (w->at == at) return w->value;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

void World::store(void* at, unsigned bytes, std::uint64_t value, Order order) {
  Fiber& me = current();
  me.buffer.push_back({at, value, static_cast<std::uint8_t>(bytes), order != Order::relaxed});
  if (order == Order::seq_cst || strategy_.flush_one_in == 0) drain_buffer(me);
}

/// The oldest, or by chance a relaxed one that may overtake those before it.
void World::write_out_one(Fiber& fiber) {
  auto& buffer = fiber.buffer;
  if (buffer.empty()) return;
  std::size_t i = 0;
  const std::size_t wished = below(2) == 0 ? below(buffer.size()) : 0;
  if (!buffer[wished].release &&
      std::none_of(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(wished),
                   [&](const Waiting& w) { return w.at == buffer[wished].at; }))
    i = wished;
  check(buffer[i].at);
  std::memcpy(buffer[i].at, &buffer[i].value, buffer[i].bytes);
  buffer.erase(buffer.begin() + static_cast<std::ptrdiff_t>(i));
}

void World::write_out_by_chance(bool all) {
  if (strategy_.flush_one_in == 0 || (!all && below(strategy_.flush_one_in) != 0)) return;
  if (!all) return write_out_one(fibers_[below(count_)]);
  for (std::size_t i = 0; i < count_; ++i) write_out_one(fibers_[i]);  // time passes
}

void World::drain_buffer(Fiber& fiber) {
  for (const Waiting& w : fiber.buffer) {
    check(w.at);
    std::memcpy(w.at, &w.value, w.bytes);
  }
  fiber.buffer.clear();
}

// --- sleep ---

bool World::sleep_on(const void* on, std::int64_t limit_ns, const char* what, Where where) {
  Fiber& me = current();
  drain_buffer(me);
  me.state = Fiber::State::asleep;
  me.on = on;
  me.until_ns = limit_ns < 0 ? -1 : now_ns_ + limit_ns;
  me.timed_out = false;
  me.doing = what;
  me.function = where.function;
  me.line = where.line;
  if (schedule_.story)
    std::fprintf(stderr, "%5llu %2zu sleeps           %s:%d\n",
                 static_cast<unsigned long long>(outcome_.steps), current_, where.function,
                 where.line);
  switch_away(false);
  return !me.timed_out;
}

void World::wake(const void* on, std::uint64_t count) {
  const std::size_t from = count_ == 0 ? 0 : below(count_);
  for (std::size_t k = 0; k < count_ && count > 0; ++k) {
    Fiber& f = fibers_[(from + k) % count_];
    if (f.state != Fiber::State::asleep || f.on != on) continue;
    f.state = Fiber::State::ready;
    --count;
  }
}

}  // namespace ringmain::interleave
