// How long does a worker take for a backlog? It is held in a call while events are queued, let go,
// and timed by its own calls.
#pragma once
#include <cstdint>
#include <vector>

#include "bench/events.hpp"
#include "bench/hearing.hpp"
#include "bench/questions.hpp"

namespace ringmain::bench {

template <class System>
class Backlogs {
 public:
  Backlogs(System& system, Stopwatch& watch) : system_(system), watch_(watch) {
    pushed_ = prime<Payload>(system, watch);
    watch.last.store(kEvents - 1);
  }
  /// Takes backlogs for that long; `meanwhile` is called again and again while one is taken.
  template <class Meanwhile>
  void take(double ns, Meanwhile meanwhile) {
    const std::int64_t until = ticks() + ticks_of(ns);
    do {
      push_one<Payload>(system_, kHold);
      watch_.wait_until_inside();
      for (std::uint64_t i = 0; i < kEvents; ++i) push_one<Payload>(system_, i);
      pushed_ += kEvents + 1;
      const std::int64_t since = ticks();
      watch_.go_on();
      while (watch_.heard.load(std::memory_order_acquire) < pushed_) meanwhile();
      spent_ += ticks() - since;
      ns_each_.push_back(static_cast<double>(watch_.ended - watch_.began) * ns_per_tick() /
                         static_cast<double>(kEvents));
    } while (ticks() < until || ns_each_.size() < 5);
  }
  [[nodiscard]] const std::vector<double>& ns_each() const { return ns_each_; }
  /// While backlogs were taken.
  [[nodiscard]] double seconds() const {
    return static_cast<double>(spent_) * ns_per_tick() * 1e-9;
  }

 private:
  enum : std::uint64_t { kEvents = 60'000 };
  System& system_;
  Stopwatch& watch_;
  std::uint64_t pushed_ = 0;
  std::int64_t spent_ = 0;
  std::vector<double> ns_each_;
};

}  // namespace ringmain::bench
