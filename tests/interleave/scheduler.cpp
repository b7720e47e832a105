#include "tests/interleave/scheduler.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/interleave/world.hpp"

namespace ringmain::interleave {

Outcome play(const Schedule& schedule, void (*scenario)()) {
  return world.play(schedule, scenario);
}
void fail(const char* what) {
  world.end(what);
}
void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}
std::uint64_t choose(std::uint64_t n) {
  return world.below(n);
}
bool planted(int fault) noexcept {
  return world.in_fiber() && world.schedule().fault == fault;
}
bool fence_form() noexcept {
  return world.fence_form();
}
bool one_instruction() noexcept {
  return !world.in_fiber() || world.schedule().seed % 2 == 0;
}
bool inside() noexcept {
  return world.in_fiber();
}

bool first_sleeps() noexcept {
  return world.fiber(0).state == Fiber::State::asleep;
}

namespace {
/// A signal may come here.
void be_interrupted() {
  Fiber& me = world.current();
  if (me.handler == nullptr || me.handlers == 2 || world.below(6) != 0) return;
  ++me.handlers;
  (*me.handler)();
  --me.handlers;
}
}  // namespace

InHandlersReach::InHandlersReach(std::function<void()> handler) : handler_(std::move(handler)) {
  world.current().handler = &handler_;
}
InHandlersReach::~InHandlersReach() {
  world.current().handler = nullptr;
}

std::uint64_t load(const void* at, unsigned bytes, Where where) {
  std::uint64_t value = 0;
  if (!inside()) {
    std::memcpy(&value, at, bytes);
    return value;
  }
  be_interrupted();
  const Outside outside;
  world.step("load", false, where);
  world.check(at);
  return world.load(at, bytes);
}

void store(void* at, unsigned bytes, std::uint64_t value, Order order, Where where) {
  if (!inside()) {
    std::memcpy(at, &value, bytes);
    return;
  }
  be_interrupted();
  const Outside outside;
  world.step("store", false, where);
  world.check(at);
  world.store(at, bytes, value, order);
}

void before_rmw(void* at, const char* what, Where where) {
  if (!inside()) return;
  be_interrupted();
  const Outside outside;
  world.step(what, false, where);
  world.check(at);
  world.drain_buffer(world.current());
}

std::uint64_t change(std::uint64_t* at, std::uint64_t (*change)(std::uint64_t), Where where) {
  if (!inside()) {
    const std::uint64_t had = *at;
    *at = change(had);
    return had;
  }
  be_interrupted();
  const Outside outside;
  world.step("change", false, where);
  world.check(at);
  const std::uint64_t had = world.load(at, sizeof *at);
  world.store(at, sizeof *at, change(had), Order::release);
  return had;
}

void drain_buffer(bool all, const char* what, Where where) {
  if (!inside()) return;
  be_interrupted();
  const Outside outside;
  world.step(what, false, where);
  if (all) return world.drain_all();
  world.drain_buffer(world.current());
}

void step(const char* what, bool yield, Where where) {
  if (!inside()) return;
  const Outside outside;
  world.step(what, yield, where);
}

bool sleep_on(const void* on, std::int64_t limit_ns, const char* what, Where where) {
  if (!inside()) std::abort();
  const Outside outside;
  world.check(on);
  return world.sleep_on(on, limit_ns, what, where);
}
void wake(const void* on, std::uint64_t count) {
  if (!inside()) return;
  const Outside outside;
  world.wake(on, count);
}
std::int64_t virtual_now_ns() noexcept {
  return world.look_at_clock();
}

std::uint64_t start_fiber(void* (*routine)(void*), void* argument) {
  const Outside outside;
  world.step("start", false, {"thread", 0});
  world.drain_buffer(world.current());
  return world.start(routine, argument);
}
void allow_threads(std::uint64_t threads) noexcept {
  world.allow_threads(threads);
}
void join_fiber(std::uint64_t i) {
  const Outside outside;
  world.step("join", false, {"thread", 0});
  while (world.fiber(i).state != Fiber::State::done)
    (void)world.sleep_on(&world.fiber(i), -1, "join", {"join", 0});
}
void at_fiber_exit(void (*destroy)(void*), void* object) {
  const Outside outside;
  world.current().at_exit.emplace_back(destroy, object);
}

}  // namespace ringmain::interleave
