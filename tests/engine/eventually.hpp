// How does a test wait? For a condition, with a deadline that only a fault can reach.
#pragma once
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace ringmain::tests {

/// True as soon as `condition()` is; false after ten minutes, which no healthy run comes near, also
/// beside many busy programs.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Linux's word for the thread: it waits for something.
[[nodiscard]] inline bool is_asleep(long thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t end = line.rfind(')');
  return end != std::string::npos && line.compare(end, 3, ") S") == 0;
}

/// A callback stands in front of it until the test opens it.
class Door {
 public:
  void open() { open_ = true; }
  /// Says that somebody has come, and waits. False: nobody opened it within ten minutes.
  bool pass() {
    ++arrived_;
    return eventually([this] { return open_.load(); });
  }
  [[nodiscard]] bool await_arrival(int n = 1) const {
    return eventually([this, n] { return arrived_.load() >= n; });
  }
  [[nodiscard]] int arrived() const { return arrived_; }

 private:
  std::atomic<bool> open_{false};
  std::atomic<int> arrived_{0};
};

}  // namespace ringmain::tests
