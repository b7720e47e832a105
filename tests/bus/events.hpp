// The events that the bus tests publish.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bus/bus.hpp"

namespace ringmain::tests {

struct Tick {
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Tick>) {
  return event("test.tick", field<&Tick::n>("n", Unit::count));
}

struct Tock {
  std::uint32_t device = 0;
  float value = 0;
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Tock>) {
  return event("test.tock", field<&Tock::device>("device", Unit::device),
               field<&Tock::value>("value"), field<&Tock::n>("n", Unit::count));
}

struct Plain {  // not described
  std::uint64_t n = 0;
};

/// A bus of so many workers, whatever the machine is.
inline BusOptions with_workers(unsigned workers) {
  BusOptions o;
  o.workers = workers;
  return o;
}

constexpr nanoseconds kForEver{-1};
constexpr nanoseconds kLong = std::chrono::minutes(10);

/// Counts how many of it were made and not yet destroyed: captures that must not leak.
class Counted {
 public:
  explicit Counted(std::atomic<int>& living) : living_(&living) { ++*living_; }
  Counted(const Counted& other) : living_(other.living_) { ++*living_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*living_; }

 private:
  std::atomic<int>* living_;
};

}  // namespace ringmain::tests
