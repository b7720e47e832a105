// What is said of operations on a bus, in order.
#pragma once
#include <chrono>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "events/collective.hpp"

namespace ringmain::tests {

template <class E>
class Heard {
 public:
  explicit Heard(Bus& bus)
      : bus_(bus), subscription_(bus.channel<E>().subscribe([this](const E& event) {
          const std::lock_guard lock(mutex_);
          all_.push_back(event);
        })) {}
  /// All that was published before.
  [[nodiscard]] std::vector<E> all() {
    EXPECT_TRUE(bus_.flush(std::chrono::minutes(10)));
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  Bus& bus_;
  std::mutex mutex_;
  std::vector<E> all_;
  Subscription subscription_;
};

}  // namespace ringmain::tests
