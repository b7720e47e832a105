// Question: what does one hook more cost an operation (11c), what do hooks that come and go
// meanwhile (11d), and how much quicker are four in two threads than functions in a locked map
// (11e)?
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "bus/hooks.hpp"

#include "adapters/sources/collective/communicator.hpp"

#include "bench/on_bus.hpp"
#include "bench/repetition.hpp"
#include "bench/reported.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using namespace ringmain::collective;

struct alignas(engine::kLineBytes) Seen {
  volatile std::uint64_t sum = 0;
};

PreHookArgs args_of(std::uint64_t number) noexcept {
  PreHookArgs args;
  args.op_id = number;
  return args;
}

/// Operations on a communicator whose pre hooks are asked; no channel is listened to.
class Operations {
 public:
  template <class F>
  [[nodiscard]] Hook add(F see) {
    return reported_.comm()
        .pre_hook([see](const PreHookArgs& args) {
          see(args);
          return Verdict::allow();
        })
        .value();
  }
  void fire(std::uint64_t) { (void)reported_.all_reduce(); }

 private:
  Bus bus_{bus_options(Worker::standard)};
  const Reported reported_{bus_};
};

/// The hooks alone, as a communicator keeps them.
class HookRow {
 public:
  HookRow() : row_(Hooks<PreHookArgs>::make(bus_, "bench").value()) {}
  template <class F>
  [[nodiscard]] Subscription add(F see) {
    return row_.add([see = PreHook([see](const PreHookArgs& args) {
                       see(args);
                       return Verdict::allow();
                     })](const PreHookArgs& args) { return see(args); });
  }
  void fire(std::uint64_t number) { (void)row_.call(args_of(number)); }

 private:
  Bus bus_{bus_options(Worker::standard)};
  Hooks<PreHookArgs> row_;
};

/// The floor: calls through pointers; none can come, go or refuse meanwhile.
class BareLoop {
 public:
  template <class F>
  int add(F see) {
    rows_.push_back(
        {[](void* hook, const PreHookArgs& args) { (*static_cast<F*>(hook))(args); }, new F(see)});
    return 0;
  }
  void fire(std::uint64_t number) {
    args_.op_id = number;
    for (const Row& row : rows_) row.call(row.hook, args_);
  }

 private:
  struct Row {
    void (*call)(void*, const PreHookArgs&);
    void* hook;  // lives as long as the process
  };
  PreHookArgs args_;
  std::vector<Row> rows_;
};

/// What is commonly written where hooks come and go while others are called.
class LockedMap {
 public:
  template <class F>
  int add(F see) {
    const std::lock_guard lock(mutex_);
    hooks_.emplace(static_cast<int>(hooks_.size()), see);
    return 0;
  }
  void fire(std::uint64_t number) {
    const PreHookArgs args = args_of(number);
    const std::lock_guard lock(mutex_);
    for (const auto& [key, hook] : hooks_) hook(args);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::function<void(const PreHookArgs&)>> hooks_;
};

auto into(Seen& seen) {
  return [to = &seen](const PreHookArgs& args) { to->sum = to->sum + args.op_id; };
}
template <class On>
auto add_all(On& on, std::vector<Seen>& seen) {
  std::vector<decltype(on.add(into(seen[0])))> held;
  for (Seen& one : seen) held.push_back(on.add(into(one)));
  return held;
}
void expect_called(Repetition& repetition, const std::vector<Seen>& seen) {
  for (const Seen& one : seen) {
    if (one.sum == 0) repetition.fail("a hook was not called");
  }
}

/// Nanoseconds of a call, in a stretch of 500.
template <class On>
double time_fires(On& on) {
  constexpr int kEach = 500;
  const std::int64_t since = ticks();
  for (std::uint64_t number = 1; number <= kEach; ++number) on.fire(number);
  return ns_since(since) / kEach;
}

/// Operations with one and with nine hooks and nine bare calls in turn, so that what slows the core
/// down meanwhile slows down each of them.
void one_more(Repetition& repetition) {
  Operations few, many;
  BareLoop bare;
  std::vector<Seen> seen_few(1), seen_many(9), seen_bare(9);
  const auto held_few = add_all(few, seen_few), held_many = add_all(many, seen_many);
  (void)add_all(bare, seen_bare);
  std::vector<double> few_ns, many_ns, bare_ns;
  const std::int64_t until = ticks() + ticks_of(40e6);
  do {
    few_ns.push_back(time_fires(few));
    many_ns.push_back(time_fires(many));
    bare_ns.push_back(time_fires(bare) / 9);
  } while (ticks() < until || few_ns.size() < 5);
  for (const auto* seen : {&seen_few, &seen_many, &seen_bare}) expect_called(repetition, *seen);
  const double one_more_ns = (median(many_ns) - median(few_ns)) / 8;
  repetition.value(one_more_ns);
  repetition.figure("times_bare", one_more_ns / median(bare_ns));
  repetition.figure("bare_ns", median(bare_ns));
  repetition.figure("one_hook_ns", median(few_ns));
}

/// How often this thread has lost its core to another one that wanted it.
std::int64_t cores_lost() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_nivcsw;
}

/// What the two threads gave in windows of 1 ms that they began together. Those in which one of
/// them lost its core say nothing of the other and are left out; so a busy machine takes longer.
/// Each is called with the window's end and number.
template <class First, class Second>
std::vector<std::array<double, 2>> in_windows(Repetition& repetition, First first, Second second) {
  enum : int { kWanted = 40, kTried = 400 };
  struct Turn {
    std::int64_t began = 0, lost = 0;
    double gave = 0;
  };
  std::array<Turn, 2> turns;
  std::array<std::atomic<int>, 2> arrived{};
  std::atomic<bool> over{false};
  const auto meet = [&arrived](std::size_t self, int point) {
    arrived[self] = point;
    while (arrived[1 - self] < point) engine::pause();
  };
  const auto take = [&turns](std::size_t self, auto& gives, int point) {
    Turn& turn = turns[self];
    const std::int64_t lost = cores_lost();
    turn.began = ticks();
    turn.gave = gives(turn.began + ticks_of(1e6), point / 2);
    turn.lost = cores_lost() - lost;
  };
  const std::jthread other([&] {
    pin(cores().worker);
    for (int point = 1;; point += 2) {
      meet(1, point);
      if (over) return;
      take(1, second, point);
      meet(1, point + 1);
    }
  });
  std::vector<std::array<double, 2>> given;
  int point = 1;
  for (; given.size() < kWanted && point < 2 * kTried; point += 2) {
    meet(0, point);
    take(0, first, point);
    meet(0, point + 1);
    const double apart_ns =
        static_cast<double>(std::abs(turns[0].began - turns[1].began)) * ns_per_tick();
    if (turns[0].lost + turns[1].lost == 0 && apart_ns < 20e3)
      given.push_back({turns[0].gave, turns[1].gave});
  }
  over = true;
  meet(0, point);
  if (given.empty()) repetition.fail("other programs took the cores in each window");
  repetition.figure("windows_left_out", (point - 1) / 2 - static_cast<double>(given.size()));
  return given;
}

/// Calls per nanosecond until `end`.
template <class On>
double fire_until(On& on, std::int64_t end) {
  const std::int64_t since = ticks();
  std::uint64_t number = 0;
  do {
    for (int i = 0; i < 16; ++i) on.fire(++number);
  } while (ticks() < end);
  return static_cast<double>(number) / ns_since(since);
}

/// Hooks that come and go; none may be called after it has gone.
class Visits {
 public:
  explicit Visits(Operations& on) : on_(on) {}
  /// 10,000 comings and goings a second until `end`; how many.
  double until(std::int64_t end) {
    double changes = 0;
    for (std::int64_t now = ticks(), due = now; now < end; now = ticks()) {
      engine::pause();
      if (now < due) continue;
      due += ticks_of(2e9 / 10'000);
      turn();
      changes += 2;
    }
    return changes;
  }
  [[nodiscard]] bool broken() const noexcept { return late_.load(std::memory_order_relaxed); }

 private:
  void turn() {
    gone_.store(false, std::memory_order_relaxed);
    Hook visitor = on_.add([this](const PreHookArgs&) {
      if (gone_.load(std::memory_order_relaxed)) late_.store(true, std::memory_order_relaxed);
    });
    (void)visitor.reset();
    gone_.store(true, std::memory_order_relaxed);
  }
  Operations& on_;
  std::atomic<bool> gone_{false}, late_{false};
};

/// In every other window a second thread lets hooks come and go beside four others; in those
/// between it only looks at the clock.
void churned(Repetition& repetition) {
  Operations on;
  std::vector<Seen> seen(4);
  const auto held = add_all(on, seen);
  Visits visits(on);
  std::vector<double> ns, still_ns, changes;
  for (const auto& [rate, changed] : in_windows(
           repetition, [&on](std::int64_t end, int) { return fire_until(on, end); },
           [&visits](std::int64_t end, int number) {
             if (number % 2 == 1) return visits.until(end);
             while (ticks() < end) engine::pause();
             return 0.0;
           })) {
    (changed > 0 ? ns : still_ns).push_back(1 / rate);
    if (changed > 0) changes.push_back(changed * 1e3);
  }
  expect_called(repetition, seen);
  if (visits.broken()) repetition.fail("a hook was called after it had gone");
  if (ns.empty() || still_ns.empty()) repetition.fail("other programs took the cores");
  repetition.value(median(ns));
  repetition.figure("times_still", median(ns) / median(still_ns));
  repetition.figure("still_ns", median(still_ns));
  repetition.figure("changes_per_second", median(changes));
}

/// Two threads call four hooks: nanoseconds that one call takes one of them. The hooks write
/// nothing, as a line that both write would cost more than all the rest.
template <class On>
void two_threads(Repetition& repetition) {
  On on;
  const auto see = [](const PreHookArgs& args) { benchmark::DoNotOptimize(args.op_id); };
  std::vector<decltype(on.add(see))> held;
  for (int i = 0; i < 4; ++i) held.push_back(on.add(see));
  std::vector<double> ns, shares;
  const auto fires = [&on](std::int64_t end, int) { return fire_until(on, end); };
  for (const auto& [one, other] : in_windows(repetition, fires, fires)) {
    ns.push_back(2 / (one + other));
    shares.push_back(one / (one + other));
  }
  repetition.value(median(ns));
  repetition.figure("share_of_one", median(shares));
}

[[maybe_unused]] const bool kAdded[] = {
    add("hooks", "one_more", {}, one_more),
    add("hooks_churn", "operation", {}, churned),
    add("hooks_two_threads", "operation", {}, two_threads<Operations>),
    add("hooks_two_threads", "row", {}, two_threads<HookRow>),
    add("hooks_two_threads", "locked_map", {}, two_threads<LockedMap>),
};

}  // namespace
}  // namespace ringmain::bench
