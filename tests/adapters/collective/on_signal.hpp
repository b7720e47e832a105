// What tests of signals share: how a signal is handled is as before after each.
#pragma once
#include <atomic>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

namespace ringmain::tests {

using Action = struct sigaction;

inline std::atomic<int> own_calls{0};

inline Action current(int number) {
  Action now{};
  ::sigaction(number, nullptr, &now);
  return now;
}
inline Action set(int number, const Action& action) {
  Action was{};
  ::sigaction(number, &action, &was);
  return was;
}
inline Action plain(void (*function)(int), int flags = 0) {
  Action made{};
  made.sa_handler = function;
  made.sa_flags = flags;
  return made;
}
inline void count_call(int) {
  ++own_calls;
}
/// How a signal is handled is as before after each test.
class OnSignalTest : public testing::Test {
 protected:
  OnSignalTest() { own_calls = 0; }
  ~OnSignalTest() override { set(SIGUSR2, before_); }

  /// Until as many calls have been made; they are made in a thread of ringmain's.
  void await(int calls) const {
    while (called_ < calls) std::this_thread::yield();
  }
  [[nodiscard]] auto counts() {
    return [this] { ++called_; };
  }

  std::atomic<int> called_{0};
  const Action before_ = current(SIGUSR2);
};

}  // namespace ringmain::tests
